/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/statements/statements.h"

const struct rp_sql rp_statements[RP_SQL_COUNT] = {
#define X(name_, params_, rows_, columns_, text_)                                                                      \
    [RP_SQL_##name_] = { .name = #name_, .text = text_, .params = params_, .rows = rows_, .columns = columns_ },
    RP_STATEMENTS(X)
#undef X
};
