package admin

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/google/go-cmp/cmp"
)

func TestRedact(t *testing.T) {
	for value, want := range map[string]string{
		"":                        "",
		"true":                    "true",
		"hunter2":                 redactedText,
		"${TOKEN}":                "${TOKEN}",
		"Bearer ${TOKEN}":         "Bearer ${TOKEN}",
		"Bearer abc":              "Bearer " + redactedText,
		"abc${TOKEN}def":          redactedText + "${TOKEN}" + redactedText,
		"${TOKEN:-abc}":           "${TOKEN:-" + redactedText + "}",
		"${TOKEN:-}":              "${TOKEN}",
		"${A}${B}":                "${A}${B}",
		"${input:key}":            "${input:key}",
		"$${TOKEN}":               redactedText,
		"${abc def}":              redactedText,
		"${:-hunter2}":            redactedText,
		"postgres://u:pw@h/${DB}": redactedText + "${DB}",
	} {
		if got := redactText(value); got != want {
			t.Errorf("%q became %q, want %q", value, got, want)
		}
	}
}

func TestRedactedRow(t *testing.T) {
	for row, want := range map[string]string{
		`{"command":"x","args":["--token","abc","-k","--api-key=abc","--key","${K}","--secret"],"cwd":"/srv"}`: `{"command":"x","args":["--token","[redacted]","-k","--api-key=[redacted]","--key","${K}","--secret"],"cwd":"/srv"}`,
		`{"env":{"A":"abc","LD_PRELOAD":"/x.so","PATH":"/bin","NODE_OPTIONS":"-r x","N":5,"B":false}}`:         `{"env":{"A":"[redacted]","LD_PRELOAD":"/x.so","PATH":"/bin","NODE_OPTIONS":"-r x","N":"[redacted]","B":false}}`,
		`{"url":"https://u:p@h:1/p?a=b&c#frag","headers":{"A":"Basic abc"}}`:                                   `{"url":"https://[redacted]@h:1/p?a=[redacted]&[redacted]","headers":{"A":"Basic [redacted]"}}`,
		`{"url":"https://h?k=${K}","auth":{"type":"oauth","clientSecret":"abc","n":[1,"b",null]}}`:             `{"url":"https://h?k=${K}","auth":{"type":"oauth","clientSecret":"[redacted]","n":["[redacted]","[redacted]",null]}}`,
		`{"url":"https://h/p?sig"}`: `{"url":"https://h/p?[redacted]"}`,
		// What is of another kind than it should be.
		`{"env":"A=abc","headers":["Authorization: abc"]}`:             `{"env":"[redacted]","headers":["[redacted]"]}`,
		`{"command":["x","--key","abc"],"args":"--key abc"}`:           `{"command":["[redacted]","[redacted]","[redacted]"],"args":"[redacted]"}`,
		`{"url":["https://u:abc@h"],"cwd":{"a":"abc"},"timeout":"9s"}`: `{"url":["[redacted]"],"cwd":{"a":"[redacted]"},"timeout":"9s"}`,
		`{"command":"x","expected_tools":["a","b"]}`:                   `{"command":"x","expected_tools":["a","b"]}`,
		// Secrets among arguments that no option announces.
		`{"command":"x","args":["-H","X: Bearer abc","--header=X:${K}","--header","X","-H"]}`:   `{"command":"x","args":["-H","X: Bearer [redacted]","--header=X:${K}","--header","X","-H"]}`,
		`{"command":"x","args":["sk-abcabcabc","https://u:p@h/p?k=abc","--db=pg://u:p@h/d",5]}`: `{"command":"x","args":["[redacted]","https://[redacted]@h/p?k=[redacted]","--db=pg://[redacted]@h/d","[redacted]"]}`,
		"{\"command\":\"a\\u0007b\",\"cwd\":\"\u202e\"}":                                        "{\"command\":\"a\\u0007b\",\"cwd\":\"\\u202e\"}",
	} {
		got := string(redactRow(config.Server{Raw: []byte(row)}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row, diff)
		}
	}
	for _, url := range []string{"http://${USER:-?}@evil/p", "http://evil${HOME}@good/p",
		"http://evil${NOPE:-/}@good/p", "${S:-https://x@}evil/p"} {
		if got := redactURL(url); got != url {
			t.Errorf("%s hides where it leads: %s", url, got)
		}
	}
	theirs := config.Server{Raw: []byte(`{"command":"x","note":{"k":"abc"}}`),
		UnknownMembers: []config.UnknownMember{{Name: "note"}}}
	if got := string(redactRow(theirs)); strings.Contains(got, "abc") {
		t.Errorf("a member that nobody knows is shown: %s", got)
	}
}

// FuzzRedacted shows that no value of a variable or header gets through, however it is written, and nothing that
// writes to a terminal.
func FuzzRedacted(f *testing.F) {
	for _, s := range []string{"", "Bearer ", "${A}", "${A:-", "$", "!", "${", "\\", "Basic ${B} "} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter2-hunter2"
		if strings.Contains(before, "${") || strings.Contains(after, "}") {
			return // it may be the name of a variable
		}
		value := rawjson.Quote(before + secret + after)
		if rawjson.Valid(value) != nil {
			return
		}
		row := []byte(`{"env":{"K":` + string(value) + `},"headers":{"K":` + string(value) + `},"auth":{"s":[` +
			string(value) + `]},` +
			`"oauth":{"clientSecret":` + string(value) + `,"client_id":{"a":` + string(value) + `}}}`)
		got := redactRow(config.Server{Raw: row})
		if rawjson.Valid(got) != nil || strings.Contains(string(got), secret) {
			t.Errorf("%s became %s", row, got)
		}
		name := rawjson.Quote(before + after)
		e := ServerEntry{Row: redactRow(config.Server{Raw: []byte(`{"command":` + string(name) + `,"env":{` +
			string(name) + `:"x"}}`)})}
		for _, p := range e.MemberLines() {
			if p.Name != safetext.Line(p.Name) || p.Value != safetext.Line(p.Value) {
				t.Errorf("%q is shown as %q", before+after, p)
			}
		}
	})
}
