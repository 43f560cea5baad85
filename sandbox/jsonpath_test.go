package sandbox

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// selectScript returns what each path of the argument paths selects, or the text of its error.
const selectScript = `
def found(r, path):
    try:
        return r.select(path)
    except ValueError as error:
        return str(error)
r = tools.keep(arguments["data"])
{path: found(r, path) for path in arguments["paths"]}`

// TestSelect evaluates paths over one document, and paths that are not valid.
func TestSelect(t *testing.T) {
	const data = `{"shop":{"items":[{"name":"pen","price":2,"tags":["a","b"]},{"name":"ink","price":7.5,"left":true},` +
		`{"name":"paper","price":2,"note":"x.y\nz"}],"open":null},"é y":{"'":1,"\"":2},"n":[0,1,2,3,4],"deep":{"name":["d"]}}`
	want := map[string]string{
		`$.shop.items[*].name`:            `["pen","ink","paper"]`,
		`$['shop']["items"][0]['price']`:  `[2]`,
		`$.shop .items [ -1 ] .name`:      `["paper"]`,
		`$..name`:                         `["pen","ink","paper",["d"]]`,
		`$.deep..*`:                       `[["d"],"d"]`,
		`$..[0]`:                          `[{"name":"pen","price":2,"tags":["a","b"]},"a",0,"d"]`,
		`$.none`:                          `[]`,
		`$.n.none[0]`:                     `[]`,
		`$.shop.open`:                     `[null]`,
		`$['\u00e9 y']['\'',"\""]`:        `[1,2]`,
		`$.n[1:3]`:                        `[1,2]`,
		`$.n[::-2]`:                       `[4,2,0]`,
		`$.n[-2:]`:                        `[3,4]`,
		`$.n[1:4:0]`:                      `[]`,
		`$.n[0,0,4:]`:                     `[0,0,4]`,
		`$.n[9]`:                          `[]`,
		`$.shop.items[?@.price>2].name`:   `["ink"]`,
		`$.shop.items[?@.left].name`:      `["ink"]`,
		`$.shop.items[?!@.left].name`:     `["pen","paper"]`,
		`$..items[?@.left==true||@.tags]`: `[{"name":"pen","price":2,"tags":["a","b"]},{"name":"ink","price":7.5,"left":true}]`,
		`$..items[?@.price==2&&!(@.tags[0]=='a')].name`: `["paper"]`,
		`$.n[?@>=1&&@<3]`:                          `[1,2]`,
		`$.n[?@==$.n[1]]`:                          `[1]`,
		`$.n[?@==true]`:                            `[]`,
		`$.n[?@!='1']`:                             `[0,1,2,3,4]`,
		`$.n[?@.a==@.b]`:                           `[0,1,2,3,4]`,
		`$.n[?true>=false]`:                        `[]`,
		`$.n[?1e0==@]`:                             `[1]`,
		`$.shop.items[?length(@.name)==3].name`:    `["pen","ink"]`,
		`$.shop.items[?count(@.*)==2].name`:        `[]`,
		`$.shop.items[?count(@.tags[*])>1].name`:   `["pen"]`,
		`$.shop.items[?value(@..left)==true].name`: `["ink"]`,
		`$.shop.items[?match(@.name,'p.n')].name`:  `["pen"]`,
		`$.shop.items[?match(@.name,'p')].name`:    `[]`,
		`$.shop.items[?search(@.name,'^p')].name`:  `["pen","paper"]`,
		`$.shop.items[?match(@.note,'x[.]y.z')]`:   `[]`,
		`$.shop.items[?match(@.name,'(')]`:         `[]`,
		`$.shop[?@[?@.left]][1].name`:              `["ink"]`,
		``:                                         `"JSONPath, character 1: a path begins with $"`,
		`shop`:                                     `"JSONPath, character 1: a path begins with $"`,
		`$.`:                                       `"JSONPath, character 3: a name is missing; other names are written as ['name']"`,
		`$.n `:                                     `"JSONPath, character 4: this is not part of a path"`,
		`$[`:                                       `"JSONPath, character 3: this is not a selector"`,
		`$[01]`:                                    `"JSONPath, character 4: ] is missing"`,
		`$[-0]`:                                    `"JSONPath, character 3: this is not a selector"`,
		`$[9007199254740992]`:                      `"JSONPath, character 19: the number is too large"`,
		`$['a`:                                     `"JSONPath, character 5: the text is not valid here"`,
		`$['\x']`:                                  `"JSONPath, character 4: the text is not valid here"`,
		`$['\ud83d']`:                              `"JSONPath, character 11: the text has half a surrogate pair"`,
		`$[?1]`:                                    `"JSONPath, character 5: this is compared with nothing"`,
		`$[?@.*==1]`:                               `"JSONPath, character 9: this does not have one value"`,
		`$[?match(@,'a')==true]`:                   `"JSONPath, character 18: this does not have one value"`,
		`$[?length(@)]`:                            `"JSONPath, character 13: this is compared with nothing"`,
		`$[?count(1)>0]`:                           `"JSONPath, character 11: count needs a path"`,
		`$[?system('id')]`:                         `"JSONPath, character 11: there is no function system"`,
		`$[?(@.a]`:                                 `"JSONPath, character 8: ) is missing"`,
		`$[?__import__('os')]`:                     `"JSONPath, character 4: this is not an operand"`,
	}
	arguments, err := json.Marshal(map[string]any{"data": json.RawMessage(data), "paths": slices.Sorted(maps.Keys(want))})
	if err != nil {
		t.Fatal(err)
	}
	o, err := openTest(t, Options{}).Run(t.Context(), Script{Code: selectScript, Arguments: arguments}, &shelf{HostFunc: echo})
	if err != nil || o.Error != nil {
		t.Fatalf("%v, %+v", err, o.Error)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(o.Value, &got); err != nil {
		t.Fatal(err)
	}
	for path, text := range want {
		if !sameJSON(t, got[path], text) {
			t.Errorf("%s: %s, want %s", path, got[path], text)
		}
	}
}

func sameJSON(t *testing.T, a json.RawMessage, b string) bool {
	t.Helper()
	normal := func(text []byte) string {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	return normal(a) == normal([]byte(b))
}
