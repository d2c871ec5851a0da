/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - what a safety net looks for, in this order. */
#include "core/safety_net/steps.h"

/* clang-format off */
const struct rp_net_step rp_net_steps[] = {
    { .name = "deletes", .what = "deleted, and no mark waits for it", .would = "marked again, due after the store's grace from now on",
      .makes_marks = true, .from = { RP_FILE_DELETED, 0 }, .find = rp_net_find_files, .mend = rp_files_mark_again },
    { .name = "uploads", .what = "never confirmed, and no mark waits for it", .would = "marked again, to be cleaned up unless it is confirmed in time",
      .makes_marks = true, .from = { RP_FILE_PENDING, 0 }, .find = rp_net_find_files, .mend = rp_files_mark_again },
    { .name = "children", .what = "lives, and what it belongs to is gone", .would = "deleted like what it belongs to, due after the store's grace from now on",
      .makes_marks = true, .from = { RP_FILE_DELETED, 0 }, .find = rp_net_find_children, .mend = rp_files_follow_owners },
    { .name = "marks", .what = "a mark waits, and nobody will look at it", .would = "looked at when it is due",
      .orphans_are_marks = true, .find = rp_net_find_marks, .mend = rp_net_mend_marks },
    { .name = "letters", .what = "a mark is dead, and no letter says so", .would = "listed among the dead letters",
      .orphans_are_marks = true, .find = rp_net_find_letters, .mend = rp_net_mend_letters },
};
/* clang-format on */
const size_t rp_net_steps_count = sizeof rp_net_steps / sizeof rp_net_steps[0];
_Static_assert(sizeof rp_net_steps / sizeof rp_net_steps[0] <= RP_LET_GO_MAX, "figures have room for each");
