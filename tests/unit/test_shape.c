/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "shape_of_everything.h"

#define NOW 1700000000000

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    assert_int_equal(rp_json_parse(text, strlen(text), &value, NULL), 0);
    return value;
}

/* The object with single quotes for double ones. */
static json_t *of(const char *text)
{
    char copy[2000];
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *p = copy; *p != '\0'; p++)
        if (*p == '\'') *p = '"';
    return parse(copy);
}

static void takes(const char *in, const char *out)
{
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_json_decrefp) json_t *value = of(in), *expected = of(out);
    if (rp_shape_take(&shape, value, NOW, &err) < 0) print_error("%s: %s\n", in, err.text);
    assert_int_equal(err.code, 0);
    if (!json_equal(value, expected)) {
        json_dumpf(value, stderr, 0);
        print_error(" is not %s\n", out);
        fail();
    }
}

static void refuses(const char *in, const char *text)
{
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_json_decrefp) json_t *value = of(in);
    assert_int_equal(rp_shape_take(&shape, value, NOW, &err), RP_EINVAL);
    if (strstr(err.text, text) == NULL) print_error("%s: %s\n", in, err.text);
    assert_non_null(strstr(err.text, text));
}

static void test_what_is_taken(void **state)
{
    (void)state;
    takes("{}", "{}");
    takes("{'text':'12345678'}", "{'text':'12345678'}");
    takes("{'any_text':''}", "{'any_text':''}");
    takes("{'int':-9223372036854775808}", "{'int':-9223372036854775808}");
    takes("{'size':0}", "{'size':0}");
    takes("{'size':'2KiB'}", "{'size':2048}");
    takes("{'bool':false}", "{'bool':false}");
    takes("{'time':'1970-01-01T00:00:01Z'}", "{'time':1000}");
    takes("{'duration':'1h30m'}", "{'duration':5400000}");
    takes("{'when':'1970-01-01'}", "{'when':0}");
    takes("{'when':'1s'}", "{'when':1699999999000}");
    takes("{'id':'mrk_0000000000007'}", "{'id':7}");
    takes("{'id':'MRK_0000000000007'}", "{'id':7}");
    takes("{'sha':'AB00000000000000000000000000000000000000000000000000000000000000'}",
          "{'sha':'ab00000000000000000000000000000000000000000000000000000000000000'}");
    takes("{'choice':'blue'}", "{'choice':'blue'}");
    takes("{'map':{'a':'b','c':''}}", "{'map':{'a':'b','c':''}}");
    takes("{'part':{'n':1},'parts':[{'n':2},{'n':3}]}", "{'part':{'n':1},'parts':[{'n':2},{'n':3}]}");
    takes("{'texts':[]}", "{'texts':[]}");
    takes("{'texts':null,'int':null,'part':null}", "{}"); /* null is not there */
}

static void test_what_is_refused_names_the_member(void **state)
{
    (void)state;
    refuses("[]", "the body: expected an object, found a list");
    refuses("{'what':1}", "what: no such member");
    refuses("{'text':''}", "text: expected a text with a number of bytes from 1 to 8, found \"\"");
    refuses("{'text':'äöüßä'}", "from 1 to 8"); /* bytes, not characters */
    refuses("{'text':true}", "text: expected a text, found true");
    refuses("{'int':'7'}", "int: expected a whole number, found \"7\"");
    refuses("{'int':7.0}", "int: expected a whole number, found 7.0");
    refuses("{'size':-1}", "size: expected bytes");
    refuses("{'size':'9999999999TiB'}", "size: expected bytes");
    refuses("{'bool':1}", "bool: expected true or false, found 1");
    refuses("{'time':'yesterday'}", "time: expected a moment");
    refuses("{'time':1700000000}", "time: expected a moment");
    refuses("{'duration':'5'}", "duration: expected a duration such as 5d, found \"5\"");
    refuses("{'when':'soon'}", "when: expected a moment");
    refuses("{'id':'fil_0000000000007'}", "id: expected an id such as mrk_");
    refuses("{'id':7}", "id: expected an id");
    refuses("{'sha':'ab'}", "sha: expected a SHA-256");
    refuses("{'choice':'pink'}", "choice: expected red, green or blue, found \"pink\"");
    refuses("{'choice':null,'map':{'a':1}}", "map.a: expected a text, found 1");
    refuses("{'map':{'a':'','b':'','c':''}}", "map: expected a number of members from 0 to 2");
    refuses("{'map':{'':''}}", "expected a name of 1 to 128 bytes");
    refuses("{'part':7}", "part: expected an object, found 7");
    refuses("{'part':{}}", "part.n: is missing");
    refuses("{'part':{'n':null}}", "part.n: is missing");
    refuses("{'parts':[]}", "parts: expected a number of elements from 1 to 3");
    refuses("{'parts':[{'n':1},{'n':10}]}", "parts[1].n: expected a number from 0 to 9, found 10");
    refuses("{'parts':[{'n':1},{'m':1}]}", "parts[1].m: no such member");
    refuses("{'texts':['a',1]}", "texts[1]: expected a text, found 1");
    refuses("{'texts':['a','b','c']}", "texts: expected a number of texts from 0 to 2");
}

static void test_long_values_are_cut_between_characters(void **state)
{
    struct rp_error err = { 0 };
    (void)state;
    RP_CLEANUP(rp_json_decrefp)
    json_t *value = of("{'int':'xäääääääääääääääääääääääääääääääääääääääääääääääää'}");
    assert_int_equal(rp_shape_take(&shape, value, NOW, &err), RP_EINVAL);
    assert_non_null(strstr(err.text, "…"));
    json_t *text = json_string(err.text); /* NULL unless it is UTF-8 */
    assert_non_null(text);
    json_decref(text);
}

static void test_query_values_are_texts(void **state)
{
    struct rp_error err = { 0 };
    (void)state;
    RP_CLEANUP(rp_json_decrefp)
    json_t *value =
               of("{'int':'-7','bool':'true','size':'1MiB','texts':'a,b','id':'mrk_0000000000007','duration':'5d'}"),
           *expected = of("{'int':-7,'bool':true,'size':1048576,'texts':['a','b'],'id':7,'duration':432000000}");
    assert_int_equal(rp_shape_take_query(&shape, value, NOW, &err), 0);
    assert_true(json_equal(value, expected));
    static const char *const wrong[] = {
        "{'int':''}",     "{'int':' 7'}", "{'int':'+7'}",      "{'int':'7x'}",
        "{'int':'-'}",    "{'bool':'1'}", "{'texts':'a,b,c'}", "{'int':'9223372036854775808'}",
        "{'choice':'x'}", "{'size':''}",  "{'text':''}"
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        json_t *one = of(wrong[i]);
        if (rp_shape_take_query(&shape, one, NOW, &err) == 0) print_error("%s was taken\n", wrong[i]);
        assert_int_equal(err.code, RP_EINVAL);
        rp_error_clear(&err);
        json_decref(one);
    }
}

static void answer(const char *text, bool good)
{
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_json_decrefp) json_t *value = of(text), *before = of(text);
    if ((rp_shape_check(&shape, value, &err) == 0) != good) print_error("%s: %s\n", text, err.text);
    assert_int_equal(err.code == 0, good);
    assert_true(json_equal(value, before)); /* which stays as it is */
}

static void test_answers(void **state)
{
    (void)state;
    answer("{'size':7,'time':'1970-01-01T00:00:01.000Z','id':'mrk_0000000000007','text':'longer than eight'}", true);
    answer("{'size':null,'part':null}", true);
    answer("{'size':'7MiB'}", false);
    answer("{'time':7}", false);
    answer("{'id':7}", false);
    answer("{'part':{'n':null}}", false);
    answer("{'part':{}}", false);
    answer("{'else':1}", false);
    const struct rp_route route = { .answer = &part, .many = true };
    RP_CLEANUP(rp_json_decrefp) json_t *page = of("{'items':[{'n':1}],'next_cursor':null}"), *bad = of("[{'n':1}]");
    assert_int_equal(rp_shape_check_answer(&route, page, NULL), 0);
    assert_int_equal(rp_shape_check_answer(&route, bad, NULL), RP_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken),
        cmocka_unit_test(test_what_is_refused_names_the_member),
        cmocka_unit_test(test_long_values_are_cut_between_characters),
        cmocka_unit_test(test_query_values_are_texts),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
