/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's command line: see usage. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "faults.h"

#define STEPS 2000

static const char usage[] =
    "usage: sim --seed N [--trace]          one run; again, it is the same one\n"
    "       sim --seeds FIRST..LAST         many runs; exit 1 if one broke a promise, and how to see it again\n"
    "       sim --soak [--from N]           until it is stopped (Ctrl-C), then the figures\n"
    "       sim --mutants [--seeds A..B]    every mutant must be caught (only sim_mutants has them)\n"
    "       sim --faults                    what can go wrong\n"
    "options: --steps N (2000) calls before everything heals; --jobs N (2) processes; --without NAME[,NAME...] faults "
    "left out;\n"
    "         --mutant NAME that mutant only; --known FILE what --mutants printed before: those seeds are tried "
    "first;\n"
    "         --all-met every kind of fault and sight must have been met;\n"
    "         --go-on list every seed that breaks a promise, and do not stop at the first\n";

static bool read_range(const char *text, uint64_t *first, uint64_t *last)
{
    int n = 0;
    return sscanf(text, "%" SCNu64 "..%" SCNu64 "%n", first, last, &n) == 2 && text[n] == '\0' && *first <= *last;
}

static bool read_without(char *text, uint64_t *out)
{
    for (char *name = strtok(text, ","); name != NULL; name = strtok(NULL, ",")) {
        enum sim_fault kind = sim_fault_by_name(name);
        if (kind == FAULT_KINDS) {
            fprintf(stderr, "sim: no fault is called '%s'; sim --faults lists them\n", name);
            return false;
        }
        *out |= UINT64_C(1) << kind;
    }
    return true;
}

static int list_faults(void)
{
    for (int i = 0; i < FAULT_KINDS; i++)
        printf("%s\n", sim_fault_name((enum sim_fault)i));
    return 0;
}

static int refuse(void)
{
    fputs(usage, stderr);
    return 2;
}

enum choice {
    SEED = 256,
    SEEDS,
    SOAK,
    FROM,
    MUTANTS,
    MUTANT,
    KNOWN,
    FAULTS,
    STEPS_MAX,
    JOBS,
    WITHOUT,
    TRACE,
    ALL_MET,
    GO_ON
};
static const struct option options[] = {
    { "seed", 1, NULL, SEED },       { "seeds", 1, NULL, SEEDS },     { "soak", 0, NULL, SOAK },
    { "from", 1, NULL, FROM },       { "mutants", 0, NULL, MUTANTS }, { "mutant", 1, NULL, MUTANT },
    { "known", 1, NULL, KNOWN },     { "faults", 0, NULL, FAULTS },   { "steps", 1, NULL, STEPS_MAX },
    { "jobs", 1, NULL, JOBS },       { "without", 1, NULL, WITHOUT }, { "trace", 0, NULL, TRACE },
    { "all-met", 0, NULL, ALL_MET }, { "go-on", 0, NULL, GO_ON },     { NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
    struct crowd_plan plan = { .first = 1, .last = 0, .steps = STEPS, .jobs = 2 };
    int c;
    bool one = false, soak = false, mutants = false;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        bool fine = true;
        switch (c) {
        case SEED:
            plan.first = plan.last = strtoull(optarg, NULL, 10);
            one = true;
            break;
        case SEEDS:
            fine = read_range(optarg, &plan.first, &plan.last);
            break;
        case SOAK:
            soak = true;
            break;
        case FROM:
            plan.first = strtoull(optarg, NULL, 10);
            break;
        case MUTANTS:
            mutants = true;
            break;
        case MUTANT:
            plan.mutant = optarg;
            mutants = true;
            break;
        case KNOWN:
            plan.known = optarg;
            break;
        case FAULTS:
            return list_faults();
        case STEPS_MAX:
            plan.steps = strtoull(optarg, NULL, 10);
            break;
        case JOBS:
            plan.jobs = atoi(optarg);
            fine = plan.jobs >= 1 && plan.jobs <= CROWD_JOBS_MAX;
            break;
        case WITHOUT:
            fine = read_without(optarg, &plan.without);
            break;
        case TRACE:
            plan.trace = true;
            break;
        case ALL_MET:
            plan.all_met = true;
            break;
        case GO_ON:
            plan.go_on = true;
            break;
        default:
            fine = false;
        }
        if (!fine) return refuse();
    }
    if (optind != argc) return refuse();
    if (mutants) return crowd_mutants(&plan);
    if (soak) plan.last = UINT64_MAX;
    if (one) return crowd_one(&plan);
    return plan.last >= plan.first ? crowd_many(&plan) : refuse();
}
