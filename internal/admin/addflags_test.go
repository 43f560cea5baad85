package admin_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                             nil,
		"  a \t b\n":                   {"a", "b"},
		`npx -y "my server"`:           {"npx", "-y", "my server"},
		`sh -c 'echo "$A" b'`:          {"sh", "-c", `echo "$A" b`},
		`a"b c"d '' ""`:                {"ab cd", "", ""},
		`C:\dir\x.exe "C:\Program F\"`: {`C:\dir\x.exe`, `C:\Program F\`},
		`it"'"s`:                       {"it's"},
	} {
		got, err := admin.SplitWords(line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		wantDiff(t, line, want, got)
	}
	for _, line := range []string{`"`, `a 'b`, `"a' b`} {
		if got, err := admin.SplitWords(line); err == nil {
			t.Errorf("%q became %q", line, got)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", `a "b c" 'd'`, `"`, "a\tb", `'a"b'`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := admin.SplitWords(line)
		if err != nil || !utf8.ValidString(line) {
			return
		}
		if kept := strings.Join(words, ""); len(kept) > len(line) {
			t.Errorf("%q became %q", line, words)
		}
		if !strings.ContainsAny(line, `"'`) {
			if joined, _ := admin.SplitWords(strings.Join(words, " ")); len(joined) != len(words) {
				t.Errorf("%q is %q, and that is %q", line, words, joined)
			}
		}
	})
}

func TestParseAdd(t *testing.T) {
	r := admin.New(admin.Options{})
	pairs := func(words ...string) (all []config.NameValue) {
		for i := 0; i < len(words); i += 2 {
			all = append(all, config.NameValue{Name: words[i], Value: words[i+1]})
		}
		return all
	}
	for line, want := range map[string]admin.AddRequest{
		"":                        {},
		"n":                       {Name: "n"},
		"--scope user":            {Scope: config.OriginUser},
		"n -- npx -y pkg --url x": {Name: "n", Command: "npx", Args: []string{"-y", "pkg", "--url", "x"}},
		"-s project n -e A=1 -eB=2= -- x": {Name: "n", Scope: config.OriginProject, Command: "x", Args: []string{},
			Env: pairs("A", "1", "B", "2=")},
		"n --url h/mcp":                     {Name: "n", URL: "https://h/mcp"},
		"n --url=http://h -t sse":           {Name: "n", URL: "http://h", Type: "sse"},
		"-t http n h.example/mcp":           {Name: "n", URL: "https://h.example/mcp", Type: "http"},
		"n https://h -H A=b:c -H X:y=z":     {Name: "n", URL: "https://h", Headers: pairs("A", "b:c", "X", "y=z")},
		"n --url ${HOST}/mcp --token -t0p":  {Name: "n", URL: "${HOST}/mcp", Token: "-t0p"},
		"n -t stdio -- x":                   {Name: "n", Command: "x", Args: []string{}},
		"n --url a --url b --transport=sse": {Name: "n", URL: "https://b", Type: "sse"},
	} {
		words, err := admin.SplitWords(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.ParseAdd(words)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		wantDiff(t, line, want, got)
	}
}

func TestRequestAsARow(t *testing.T) {
	for want, q := range map[string]admin.AddRequest{
		`{"command":"x","args":["<a>"],"env":{"K":"2"}}`: {Command: "x",
			Args: []string{"<a>"}, Env: []config.NameValue{{Name: "K", Value: "1"}, {Name: "K", Value: "2"}}},
		`{"type":"sse","url":"https://h","headers":{"Authorization":"Bearer t","X-Y":"\"v"}}`: {URL: "https://h",
			Type: "sse", Token: "t", Headers: []config.NameValue{{Name: "X-Y", Value: `"v`}}},
		`{}`: {},
	} {
		wantDiff(t, "row", want, string(q.Row()))
	}
}

// FuzzParseAdd shows that whatever the words are, the answer is a request or a sentence, and no value of an option that
// holds secrets is in the sentence.
func FuzzParseAdd(f *testing.F) {
	for _, s := range []string{"n -- x y", "n --url h --token hunter2 --header K=V", "--env", "n -e A=1 -- x", "--x=y",
		"-", "-s", "n a b"} {
		f.Add(s)
	}
	r := admin.New(admin.Options{})
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		q, err := r.ParseAdd(words)
		if _, known := errors.AsType[admin.UserError](err); err != nil && !known {
			t.Errorf("%q: %v", line, err)
		}
		if err == nil && q.Complete() && (q.Name == "" || q.URL != "" && q.Command != "") {
			t.Errorf("%q became %+v", line, q)
		}
		const secret = "hunter2-hunter2"
		_, err = r.ParseAdd(append([]string{"--token", secret, "--header", secret + "=" + secret}, words...))
		if err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(line, secret) {
			t.Errorf("%q: the secret is shown: %v", line, err)
		}
	})
}
