/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a body, against a shape with every kind of member: refused with words, or of the
 * types that handlers rely on. */
#include <stdint.h>
#include <string.h>

#include "../unit/shape_of_everything.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_typed(const struct rp_field *f, const json_t *v)
{
    switch (f->kind) {
    case RP_FIELD_TEXT:
        return json_is_string(v) && (f->most == 0 || (json_string_length(v) >= 1 && json_string_length(v) <= 8));
    case RP_FIELD_SHA256:
        return json_is_string(v) && json_string_length(v) == 64;
    case RP_FIELD_CHOICE:
        return json_is_string(v);
    case RP_FIELD_BOOL:
        return json_is_boolean(v);
    case RP_FIELD_MAP:
        return json_is_object(v) && json_object_size(v) <= 2;
    case RP_FIELD_OBJECT:
        return json_is_object(v) && json_is_integer(json_object_get(v, "n"));
    case RP_FIELD_LIST:
        return json_is_array(v) && json_array_size(v) >= 1 && json_array_size(v) <= 3;
    case RP_FIELD_TEXTS:
        return json_is_array(v) && json_array_size(v) <= 2;
    default:
        return json_is_integer(v);
    }
}

static void check_taken(const json_t *value)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        const struct rp_field *f = fields;
        while (strcmp(f->name, name) != 0)
            RP_ASSERT(++f < fields + shape.n_fields);
        RP_ASSERT(is_typed(f, member));
    }
}

/* Every member as a text, as a query has them. */
static void try_as_query(json_t *value)
{
    const char *name;
    json_t *member;
    struct rp_error err = { 0 };
    json_object_foreach(value, name, member) if (!json_is_string(member)) return;
    int r = rp_shape_take_query(&shape, value, 1700000000000, &err);
    RP_ASSERT(r == err.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
    if (rp_json_parse((const char *)data, size, &value, &err) < 0) return 0;
    RP_CLEANUP(rp_json_decrefp) json_t *copy = json_deep_copy(value);
    int r = rp_shape_take(&shape, value, 1700000000000, &err);
    RP_ASSERT(r == err.code && (r == 0 || err.text[0] != '\0') && rp_utf8_valid(err.text, strlen(err.text)));
    if (r == 0) check_taken(value);
    (void)rp_shape_check(&shape, copy, &err);
    if (json_is_object(copy)) try_as_query(copy);
    return 0;
}
