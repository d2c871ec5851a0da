/* SPDX-License-Identifier: Apache-2.0 */
/* shape_of_everything.h - a shape with every kind of member, for the tests of shapes. */
#ifndef RP_TESTS_SHAPE_OF_EVERYTHING_H
#define RP_TESTS_SHAPE_OF_EVERYTHING_H

#include "http/route/shape.h"

static const char *const choices[] = { "red", "green", "blue", NULL };
static const struct rp_field part_fields[] = {
    { .name = "n", .kind = RP_FIELD_INT, .required = true, .least = 0, .most = 9 },
};
static const struct rp_shape part = RP_SHAPE("Part", part_fields, NULL);
static const struct rp_field fields[] = {
    { .name = "text", .kind = RP_FIELD_TEXT, .least = 1, .most = 8 },
    { .name = "any_text", .kind = RP_FIELD_TEXT },
    { .name = "int", .kind = RP_FIELD_INT },
    { .name = "size", .kind = RP_FIELD_SIZE },
    { .name = "bool", .kind = RP_FIELD_BOOL },
    { .name = "time", .kind = RP_FIELD_TIME },
    { .name = "duration", .kind = RP_FIELD_DURATION },
    { .name = "when", .kind = RP_FIELD_WHEN },
    { .name = "id", .kind = RP_FIELD_ID, .id = RP_ID_MARK },
    { .name = "sha", .kind = RP_FIELD_SHA256 },
    { .name = "choice", .kind = RP_FIELD_CHOICE, .choices = choices },
    { .name = "map", .kind = RP_FIELD_MAP, .most = 2 },
    { .name = "part", .kind = RP_FIELD_OBJECT, .of = &part },
    { .name = "parts", .kind = RP_FIELD_LIST, .of = &part, .least = 1, .most = 3 },
    { .name = "texts", .kind = RP_FIELD_TEXTS, .most = 2 },
};
static const struct rp_shape shape = RP_SHAPE("Everything", fields, NULL);

#endif
