/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the numbered steps that bring a catalog up to date, compiled in from
 * schema/NNN-name.sql. */
#ifndef RP_CATALOG_SCHEMA_H
#define RP_CATALOG_SCHEMA_H

#include <stddef.h>

struct rp_schema_step {
    int number;
    const char *name;
    const char *sql;
};

extern const struct rp_schema_step rp_schema_steps[];
extern const size_t rp_schema_steps_n;

#endif
