package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSources(t *testing.T) {
	list, err := sources()
	if err != nil || len(list) < 10 {
		t.Fatal(len(list), err)
	}
	allowed := []string{"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "WordNet-3.0 and MIT"}
	for _, s := range list {
		if !slices.Contains(allowed, s.licence) || s.version == "" || s.registry != "go" && s.registry != "npm" {
			t.Errorf("%+v", s)
		}
		if !strings.HasPrefix(s.sum, "h1:") && !strings.HasPrefix(s.sum, "sha512-") {
			t.Errorf("%s is held to no sum", s.name)
		}
	}
}

func TestReadGo(t *testing.T) {
	dir := t.TempDir()
	code := `package mail

// Send hands a letter to the post office.
func (c *Client) Send(ctx context.Context, letter Letter, urgent bool) error { return nil }

// unexported is not read.
func unexported() {}

func Silent() {}
`
	for name, text := range map[string]string{"mail.go": code, "mail_test.go": code, "broken.go": "package",
		"internal/x.go": code} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readGo(dir)
	want := []entry{{Server: "mail Client", Name: "Send", Text: "hands a letter to the post office.",
		Params: []string{"letter", "Letter", "urgent"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

const petstore = `{"info":{"title":"Pets","license":{"name":"Apache 2.0"}},"paths":{"/pets":{"parameters":[],
"post":{"operationId":"addPet","summary":"Add a pet","description":"Adds <b>one</b> pet to the store.",
"parameters":[{"name":"store","description":"Which store"}],
"requestBody":{"content":{"application/json":{"schema":{"properties":{"name":{"description":"What it is called"},"age":{}}}}}}}}}}`

func TestOperations(t *testing.T) {
	want := []entry{{Server: "Pets", Name: "addPet", Text: "Add a pet. Adds one pet to the store.",
		Params: []string{"store", "age", "name"}, Hints: []string{"Which store", "What it is called"}}}
	if diff := cmp.Diff(want, operations([]byte(petstore))); diff != "" {
		t.Error(diff)
	}
	if got := operations([]byte(strings.Replace(petstore, "Apache 2.0", "All rights reserved", 1))); got != nil {
		t.Error(got)
	}
}

func TestParseSynset(t *testing.T) {
	got, err := parseSynset(
		`02958343 06 n 03 car 0 auto 0 motor_car 0 002 @ 03791235 n 0000 + 01935846 v 0201 | a motor vehicle; "he needs a car to get to work"`)
	want := synset{at: "02958343", words: "car auto motor car", above: "03791235", gloss: "a motor vehicle",
		examples: []string{"he needs a car to get to work"}}
	if got.at != want.at || got.words != want.words || got.above != want.above || got.gloss != want.gloss ||
		!slices.Equal(got.examples, want.examples) || got.proper || err != nil {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{"", "1 2 n", "1 2 n zz car 0", "1 2 n 09 car 0 000"} {
		if _, err := parseSynset(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

const script = "server.tool(\"send_mail\", 'Sends a letter to somebody\\'s box', { to: z.string().describe(\"Who gets it\") }, f);\n" +
	"const t = {name: `list_mail`, description: \"List the letters of a day\", inputSchema: {properties: {day: {type: 'string', description: 'Which day'}}}};"

func TestDefinitions(t *testing.T) {
	want := []entry{
		{Name: "send_mail", Text: "Sends a letter to somebody's box", Params: []string{"to"},
			Hints: []string{"Who gets it"}},
		{Name: "list_mail", Text: "List the letters of a day", Params: []string{"day"}, Hints: []string{"Which day"}},
	}
	if diff := cmp.Diff(want, definitions(script)); diff != "" {
		t.Error(diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(script)
	f.Add(petstore)
	f.Add("02958343 06 n 01 car 0 000 | a motor vehicle")
	f.Fuzz(func(t *testing.T, text string) {
		definitions(text)
		operations([]byte(text))
		_, _ = parseSynset(text)
	})
}

func TestWithoutCommon(t *testing.T) {
	var all []entry
	for _, name := range []string{"Apple", "Pear", "Plum", "Cherry", "Nut", "Fig", "Date"} {
		all = append(all, entry{From: "fruit", Name: "New" + name, Text: "Makes a " + name +
			" object. It grows on the " + name + " tree of " + strings.ToLower(name+name) + "."})
	}
	all = append(all, entry{From: "fruit", Name: "Eat", Text: "Eats what is on the table."})
	var want []string
	for _, e := range all {
		want = append(want, strings.TrimPrefix(e.Text, "Makes a "+strings.TrimPrefix(e.Name, "New")+" object. "))
	}
	var got []string
	for _, e := range withoutCommon(all) {
		got = append(got, e.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNothingEvaluatedIsLearntFrom writes a question and a description like those of the evaluation sets: what says
// the same, however it is written, is left out.
func TestNothingEvaluatedIsLearntFrom(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "set"), 0o755); err != nil {
		t.Fatal(err)
	}
	rows := `{"id":"1","query":"Please read the report, then mail it to the office in Oslo."}
{"name":"x","description":"Reads a report. It is mailed to all that asked.","inputSchema":{"properties":{"to":{"description":"the people who shall have the report"}}}}
`
	if err := os.WriteFile(filepath.Join(dir, "set", "rows.jsonl"), []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	keys, err := evaluated(dir)
	if err != nil || len(keys) != 4 {
		t.Fatal(keys, err)
	}
	bars := map[uint64]bool{}
	for _, k := range keys {
		bars[k] = true
	}
	got := unbarred([]entry{
		{Name: "a", Text: "please READ the report then mail it to the office in Oslo"},
		{Name: "b", Text: "Something else. It is mailed to all that asked."},
		{Name: "c", Text: "Something else altogether, it seems to me.",
			Hints: []string{"The people who shall have the report.", "their office"}},
	}, bars)
	if diff := cmp.Diff([]entry{{Name: "c", Text: "Something else altogether, it seems to me.",
		Hints: []string{"their office"}}}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := barred(dir); err == nil {
		t.Error("an evaluation set that is not barred is let through")
	}
	if built, err := barred(""); err != nil || len(built) < 10_000 {
		t.Error(len(built), err)
	}
}
