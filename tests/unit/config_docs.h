/* SPDX-License-Identifier: Apache-2.0 */
/* config_docs.h - docs/config.md and man/reprieve.yaml.5, from the table of settings. `test_config
 * --write` writes them. */
#ifndef RP_TESTS_CONFIG_DOCS_H
#define RP_TESTS_CONFIG_DOCS_H

#include "base/error.h"
#include "base/text/buf.h"

int config_write_docs(struct rp_buf *out, struct rp_error *err);
int config_write_man(struct rp_buf *out, struct rp_error *err);
/* Both files, from the source's root. 0, or what the program ends with. */
int config_write_files(void);

#endif
