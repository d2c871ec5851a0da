/* SPDX-License-Identifier: Apache-2.0 */
/* weather.h - what goes wrong without anybody's call. */
#ifndef RP_SIM_WEATHER_H
#define RP_SIM_WEATHER_H

#include "base/time.h"

#define SIM_LATE_PUT_MS (10 * RP_HOUR_MS) /* no upload is under way for longer */
#define SIM_LATE_MS     (20 * RP_HOUR_MS) /* no other request: what was returned is looked at after a day */

struct sim;

void sim_weather(struct sim *s);
void sim_heal_weather(struct sim *s);

#endif
