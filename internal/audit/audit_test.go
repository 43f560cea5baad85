package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	arguments := `{"path":"a\"b ü 𝄞","n":12345678901234567890,"deep":[{"x":null},true,1e-7]}`
	sum := sha256.Sum256([]byte(arguments))
	full := audit.Record{
		ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Kind: audit.Call, At: noon, Parent: "P",
		Caller: audit.Caller{Kind: "external", Principal: "ada <ü>", Client: "editor 1.2", Session: "ab12",
			Thread: "t", Run: "r"},
		Transport: "stdio", Method: "tools/call", Card: "fs__read", Server: "fs", Tool: "read", Definition: "d1",
		Arguments: json.RawMessage(arguments),
		Effect:    "allow", Rule: "r1", Reason: "because", Approval: "k3f9qzab", By: "ada, drawbridge ask",
		Label: "untrusted, private", Origins: []string{"result mail__message", "page \"a\nb\""},
		Outcome: audit.Refused, Code: "policy_blocked", Duration: 1500, Bytes: 7,
	}
	for _, r := range []audit.Record{full, {ID: "1", Kind: audit.Done, At: noon},
		{ID: "3", Kind: audit.Call, At: noon, Label: "project"}, {ID: "2", Kind: audit.Shield,
			At: noon, Server: "fs", Card: "x", Tool: "x"}} {
		line := new(audit.RedactionRules).AppendRecord(nil, &r)
		if !json.Valid(line) || bytes.ContainsAny(line, "\n\r") {
			t.Errorf("no line of JSON: %s", line)
		}
		got, err := audit.DecodeRecord(line)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := audit.Summarize(line); s.Kind != r.Kind || s.ID != r.ID || s.Outcome != r.Outcome || err != nil {
			t.Errorf("the summary of %s is %+v, %v", line, s, err)
		}
		if got := audit.EndsOK(line); got != (r.Outcome == audit.OK || r.Outcome == audit.Asked || r.Outcome == audit.Task) {
			t.Errorf("%s ends well: %v", line, got)
		}
		want := r
		if r.Arguments != nil {
			want.Digest, want.Size = hex.EncodeToString(sum[:]), len(arguments)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDecodeRefusesOtherText(t *testing.T) {
	for _, line := range []string{``, `{`, `[]`, `{}`, `{"id":"1"}`, `{"kind":"call"}`,
		`{"id":"1","kind":"call","ns":"canary"}`} {
		if _, err := audit.DecodeRecord([]byte(line)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{``, `{`, `{}`, `{"id":"1"}`, `{"id":"","kind":"call"}`,
		`{"id":"1","kind":"call","card":"canary}`, `{"id":1,"kind":"call"}`, `{"id":"1","kind":"call"}{`} {
		if _, err := audit.Summarize([]byte(line)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s has a head: %v", line, err)
		}
	}
	if s, err := audit.Summarize([]byte(`{"kind":"later","id":"a\"b"}`)); s.Kind != "later" || s.ID != `a"b` || err != nil {
		t.Errorf("the summary of a record of later days is %+v, %v", s, err)
	}
}

// TestEndsOK has records that only look as if they had an outcome.
func TestEndsOK(t *testing.T) {
	for line, want := range map[string]bool{
		`{"id":"1","kind":"call","outcome":"ok","ns":12,"bytes":3}`:                                  true,
		`{"id":"1","kind":"call","outcome":"ok"}`:                                                    true,
		`{"id":"1","kind":"done","outcome":"task","ns":1}`:                                           true,
		`{"id":"1","kind":"call","outcome":"is_error","ns":12,"bytes":3}`:                            false,
		`{"id":"1","kind":"call","outcome":"fault","code":"timeout","ns":12}`:                        false,
		`{"id":"1","kind":"call","arguments":{"a":1,"outcome":"ok"},"digest":"00","effect":"allow"}`: false,
		`{"id":"1","kind":"call","reason":"x\",\"outcome\":\"ok"}`:                                   false,
		`{"id":"1","kind":"call","outcome":"ok","ns":}`:                                              false,
		``: false, `}`: false, `"}`: false,
	} {
		if got := audit.EndsOK([]byte(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// TestOutcomeEndsARecord completes records as a spool does.
func TestOutcomeEndsARecord(t *testing.T) {
	call := audit.Record{ID: "1", Kind: audit.Call, At: noon, Card: "fs__read", Server: "fs", Tool: "fs__read", Effect: "allow"}
	for _, done := range []audit.Record{
		{Outcome: audit.OK}, {Outcome: audit.Ambiguous, Code: "server_error", Duration: math.MaxInt64, Bytes: math.MaxInt64},
	} {
		rules := new(audit.RedactionRules)
		line, tail := rules.AppendRecord(nil, &call), rules.AppendOutcome(nil, &done)
		got, err := audit.DecodeRecord(append(line[:len(line)-1], tail...))
		want := call
		want.Outcome, want.Code, want.Duration, want.Bytes = done.Outcome, done.Code, done.Duration, done.Bytes
		if diff := cmp.Diff(want, got); err != nil || diff != "" || len(tail) > 101 {
			t.Errorf("%d bytes, %v: %s", len(tail), err, diff)
		}
	}
}

// kept is what the rules let through of arguments.
func kept(t testing.TB, rules audit.RedactionRules, arguments string) string {
	t.Helper()
	line := rules.AppendRecord(nil, &audit.Record{ID: "1", Kind: audit.Call, At: noon,
		Arguments: json.RawMessage(arguments)})
	r, err := audit.DecodeRecord(line)
	if err != nil {
		t.Fatalf("%v: %q", err, line)
	}
	if want := sha256.Sum256([]byte(arguments)); r.Digest != hex.EncodeToString(want[:]) || r.Size != len(arguments) {
		t.Errorf("digest %s of %d bytes", r.Digest, r.Size)
	}
	return string(r.Arguments)
}

func TestArgumentsAreRedacted(t *testing.T) {
	line := strings.Repeat("MIIEvQ+/", 8)
	const gone = `"[redacted]"`
	for arguments, want := range map[string]string{
		`{"path":"/tmp/x","limit":10}`:  `{"path":"/tmp/x","limit":10}`,
		` { "a" : [ 1 , { } , [ ] ] } `: `{"a":[1,{},[]]}`,
		`"hello"`:                       `"hello"`,
		// Names.
		`{"password":"x"}`:                     `{"password":` + gone + `}`,
		`{"p\u0061ssword":"x"}`:                `{"p\u0061ssword":` + gone + `}`,
		`{"apiKey":"x","API_TOKEN":"x"}`:       `{"apiKey":` + gone + `,"API_TOKEN":` + gone + `}`,
		`{"db.password":["x",{"y":1}],"b":1}`:  `{"db.password":` + gone + `,"b":1}`,
		`{"auth":{"user":"u","pass":"p"}}`:     `{"auth":` + gone + `}`,
		`{"pin":1234,"pins":[1],"otp":null}`:   `{"pin":` + gone + `,"pins":` + gone + `,"otp":null}`,
		`{"secret":true,"token":"","key":1.5}`: `{"secret":true,"token":"","key":` + gone + `}`,
		`{"author":"me","keyboard":"de","spinner":1,"keyword":"k","monkey":1,"passenger":"p","tokyo":1}`: `{"author":"me","keyboard":"de","spinner":1,"keyword":"k","monkey":1,"passenger":"p","tokyo":1}`,
		`{"myaccesstokenforeverybodyinthehouse":"x"}`:                                                    `{"myaccesstokenforeverybodyinthehouse":` + gone + `}`,
		`{"PGPASSWORD":"x","dbpassword":"x","bypass":"y","userpass":["x"]}`:                              `{"PGPASSWORD":` + gone + `,"dbpassword":` + gone + `,"bypass":"y","userpass":` + gone + `}`,
		`{"averyveryverylongwordthatendsinsecret":"x"}`:                                                  `{"averyveryverylongwordthatendsinsecret":` + gone + `}`,
		`{"env":[{"name":"API_TOKEN","value":"x"},{"name":"A","value":1}]}`:                              `{"env":[{"name":"API_TOKEN","value":` + gone + `},{"name":"A","value":1}]}`,
		`{"value":"x","name":"password"}`: `{"value":` +
			gone + `,"name":"password"}`,
		`{"value":"x","a":1,"value":[2],"field":"password","b":"y"}`: `{"value":` +
			gone + `,"a":1,"value":` + gone + `,"field":"password","b":"y"}`,
		`{"name":"a","value":{"header":"token","value":1}}`: `{"name":"a","value":{"header":"token","value":` + gone +
			`}}`,
		// Values.
		` { "a" : "password=x" , "b" : [ "y" , "token: z" ] , "pin" : { "c" : 1 } } `: `{"a":"password=[redacted]","b":["y","token: [redacted]"],"pin":` + gone + `}`,
		`{"note":"use ghp_0123456789abcdefghij now"}`:                                 `{"note":"use [redacted] now"}`,
		`["eyJhbGciOiJIUzI1NiJ9.e30.x"]`:                                              `[` + gone + `]`,
		`{"t":"AKIAIOSFODNN7EXAMPLE"}`:                                                `{"t":` + gone + `}`,
		`{"header":"Authorization: Bearer abcdefgh"}`:                                 `{"header":"Authorization: Bearer [redacted]"}`,
		`{"h":"bearer of bad news"}`:                                                  `{"h":"bearer of bad news"}`,
		`{"cmd":"curl -u a:b --token s3cr3t https://x"}`:                              `{"cmd":"curl -u a:b --token [redacted] https://x"}`,
		`{"cmd":"PASSWORD=hunter2 make; token: 'abc', done"}`:                         `{"cmd":"PASSWORD=[redacted] make; token: '[redacted]', done"}`,
		`{"body":"{\"password\": \"hunter2\", \"n\": 1}"}`:                            `{"body":"{\"password\": \"[redacted]\", \"n\": 1}"}`,
		`{"args":["--password","hunter2","--token=abc","x"]}`: `{"args":["--password",` + gone +
			`,"--token=[redacted]","x"]}`,
		`{"url":"https://u:hunter2@example.org/?api_key=abc&q=1"}`: `{"url":"https://u:[redacted]@example.org/?api_key=[redacted]&q=1"}`,
		`{"k":"-----BEGIN KEY-----\n` + line +
			`\nabc=\n-----END KEY----- after"}`: `{"k":"-----BEGIN KEY-----\n[redacted]\n-----END KEY----- after"}`,
		`{"k":"-----BEGIN KEY-----\nrm -rf / # hides nothing"}`:               `{"k":"-----BEGIN KEY-----\nrm -rf / # hides nothing"}`,
		`{"say":"my known-value here","known-value":1,"u":"x?known-value&y"}`: `{"say":"my [redacted] here","[redacted]":1,"u":"x?[redacted]&y"}`,
		// What is not JSON is not kept.
		`{"a":`: ``, `{"a" 1}`: ``, `{"a":1}}`: ``, `{"a":tru}`: ``, "{\"a\":\"\xff\"}": ``, `[1 2]`: ``,
		`{"password":`: ``, `[`: ``,
	} {
		rules := audit.RedactionRules{KnownSecrets: func() []string { return []string{"known-value", "my", ""} }}
		if got := kept(t, rules, arguments); got != want {
			t.Errorf("of %s\nkept %s\nwant %s", arguments, got, want)
		}
		if got := rules.Redact(json.RawMessage(arguments)); string(got) != want || want == "" && got != nil {
			t.Errorf("of %s\nleft %s\nwant %s", arguments, got, want)
		}
	}
}

// TestKnownValuesAreLeftOutWhereverTheyStand has one that is a number, and one in two by the end of what is looked at
// of a text.
func TestKnownValuesAreLeftOutWhereverTheyStand(t *testing.T) {
	rules := audit.RedactionRules{KnownSecrets: func() []string {
		return []string{"31415926535",
			"known-secret-value"}
	}}
	if got, want := kept(t, rules, `{"n":31415926535,"m":[-131415926535.5,27182],"b":true}`),
		`{"n":"[redacted]","m":["-1[redacted].5",27182],"b":true}`; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	if got, want := kept(t, rules, `{"n\u0061me":"API_TOKEN","value":"x"}`),
		`{"n\u0061me":"API_TOKEN","value":"[redacted]"}`; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	rules.KnownSecrets = func() []string {
		return []string{"account-1", "known-secret-value", "account-1:hunter2", "value:account", "account-1"}
	}
	if got, want := kept(t, rules, `["account-1:hunter2, account-1account-1","known-secret-value:account-2"]`),
		`["[redacted], [redacted][redacted]","[redacted]-2"]`; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	for end := 9 << 10; end > 9<<10-20; end-- {
		text := "password=" + strings.Repeat("a", end-9-1) + " known-secret-value and more"
		if got := kept(t, rules, `{"t":"`+text+`"}`); strings.Contains(got, "known") {
			t.Fatalf("at %d kept %s", end, got)
		}
	}
}

func TestModes(t *testing.T) {
	const arguments = `{"password":"x"}`
	for mode, want := range map[audit.ArgumentMode]string{
		"": `{"password":"[redacted]"}`, audit.KeepRedacted: `{"password":"[redacted]"}`, audit.KeepHash: ``,
		audit.KeepFull: arguments,
	} {
		if got := kept(t, audit.RedactionRules{Arguments: mode}, arguments); got != want {
			t.Errorf("%q keeps %s, want %s", mode, got, want)
		}
	}
}

func TestLongArgumentsAreCut(t *testing.T) {
	rules := audit.RedactionRules{MaxString: 8}
	text := "0123456ü9abc"
	sum := sha256.Sum256([]byte(text))
	if got, want := kept(t, rules, `{"t":"`+text+`"}`), `{"t":"0123456…[13 bytes, sha256 `+hex.EncodeToString(sum[:8])+
		`]"}`; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	for _, secret := range []string{"ghp_" + strings.Repeat("a", 40), "password=" + strings.Repeat("a", 40)} {
		if got := kept(t, rules, `{"t":"x `+secret+`"}`); strings.Contains(got, "aa") {
			t.Errorf("the cut shows the beginning of a secret: %s", got)
		}
	}
	many := "[" + strings.Repeat("12345678,", 10_000) + "1]"
	if got := kept(t, rules, many); got != `"[too much to keep]"` {
		t.Errorf("kept %.80s", got)
	}
	deep := strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40)
	if got := kept(t, rules, deep); !strings.Contains(got, "[nested too deep]") {
		t.Errorf("kept %s", got)
	}
}

func TestTextsFromOutsideAreVeiledAndCut(t *testing.T) {
	line := new(audit.RedactionRules).AppendRecord(nil, &audit.Record{
		ID: "1", Kind: audit.Call, Card: "https://u:hunter2@x/?token=hunter2", Tool: "x?key=hunter2", Server: "s",
		Reason: strings.Repeat("ü", 400), Caller: audit.Caller{Client: "ghp_0123456789abcdefghij\n"},
		Label:   "untrusted",
		Origins: []string{"web page https://x/?token=hunter2", strings.Repeat("ü", 400), "c", "d", "e"},
	})
	r, err := audit.DecodeRecord(line)
	if err != nil {
		t.Fatal(err)
	}
	want := audit.Record{
		ID: "1", Kind: audit.Call, Card: "https://u:[redacted]@x/?token=[redacted]",
		Tool: "x?key=[redacted]", Server: "s",
		Reason: strings.Repeat("ü", 254) + "…", Caller: audit.Caller{Client: "[redacted]\n"},
		Label: "untrusted", Origins: []string{"web page https://x/?token=[redacted]", strings.Repeat("ü", 254) + "…", "c", "d"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

func TestFold(t *testing.T) {
	call := func(id, server string) audit.Record { return audit.Record{ID: id, Kind: audit.Call, Server: server} }
	done := func(id string) audit.Record {
		return audit.Record{ID: id, Kind: audit.Done, Outcome: audit.IsError, Code: "c", Duration: 3, Bytes: 4}
	}
	refused := audit.Record{ID: "r", Kind: audit.Call, Outcome: audit.Refused}
	whole := func(r audit.Record) audit.Record {
		r.Outcome, r.Code, r.Duration, r.Bytes = audit.IsError, "c", 3, 4
		return r
	}
	got := audit.MergeOutcomes([]audit.Record{call("a", "x"), call("b", "x"), refused, done("b"), call("a", "y"),
		done("a"), done("lost"), call("open", "z")})
	want := []audit.Record{whole(call("a", "y")), whole(call("b", "x")), refused, done("lost"), call("open", "z")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCheckpoints(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := audit.Checkpoint{Stream: "audit", Seq: 7, Hash: [32]byte{1}, At: noon}.Sign(private)
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*audit.Checkpoint){
		"seq":       func(c *audit.Checkpoint) { c.Seq++ },
		"hash":      func(c *audit.Checkpoint) { c.Hash[31] = 1 },
		"time":      func(c *audit.Checkpoint) { c.At = c.At.Add(time.Millisecond) },
		"stream":    func(c *audit.Checkpoint) { c.Stream = "other" },
		"signer":    func(c *audit.Checkpoint) { c.Signer = make([]byte, 32) },
		"short key": func(c *audit.Checkpoint) { c.Signer = nil },
		"signature": func(c *audit.Checkpoint) { c.Signature = nil },
	} {
		other := c
		if change(&other); other.Verify() == nil {
			t.Errorf("another %s: the signature holds", name)
		}
	}
	if key, err := audit.ParsePublicKey(audit.FormatPublicKey(public)); err != nil || !key.Equal(public) {
		t.Errorf("the key came back as %x: %v", key, err)
	}
	if _, err := audit.ParsePublicKey("abcd"); err == nil {
		t.Error("half a key was read")
	}
}

// bracketed is what stands in the place of something that is not kept.
var bracketed = regexp.MustCompile(`\[(redacted|nested too deep|too much to keep|\d+ bytes, sha256 [0-9a-f]{16})\]`)

// FuzzArguments holds that whatever comes, a record can be read again, keeps no value of a secret's name, is the same
// when it is written twice, and keeps what is not a secret as it was, except for the blanks.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"x"]}`, `{"password":"canary-0"}`, `[{"name":"key","value":"canary-0"}]`,
		`{"a":"\ud800"}`, `["--token","canary-0"]`, `{"a":"\q"}`, ` { "a" : 1 , "b\u0061" : { } } `} {
		f.Add([]byte(seed), "GET https://u:p@x/?token=1")
	}
	f.Fuzz(func(t *testing.T, arguments []byte, card string) {
		var rules audit.RedactionRules
		r := audit.Record{ID: "1", Kind: audit.Call, At: noon, Card: card, Arguments: arguments}
		line := rules.AppendRecord(nil, &r)
		if again := rules.AppendRecord(nil, &r); !bytes.Equal(line, again) {
			t.Errorf("%q, and then %q", line, again)
		}
		if _, err := audit.DecodeRecord(line); err != nil || bytes.ContainsAny(line, "\n\r") {
			t.Errorf("%v: %q", err, line)
		}
		if !json.Valid(arguments) {
			return
		}
		var compact bytes.Buffer
		_ = json.Compact(&compact, arguments)
		if got := kept(t, rules, string(arguments)); !bracketed.MatchString(got) && got != compact.String() &&
			utf8.Valid(arguments) {
			t.Errorf("of %s\nkept %s", compact.String(), got)
		}
		wrapped := append(append([]byte(`{"password":`), arguments...), '}')
		if got := kept(t, rules, string(wrapped)); len(got) > len(`{"password":"[redacted]"}`) &&
			got != `"[too much to keep]"` {
			t.Errorf("of %s\nkept %s", wrapped, got)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	r := audit.Record{
		ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Kind: audit.Call, At: noon,
		Caller:    audit.Caller{Kind: "external", Principal: "ada", Client: "editor 1.2"},
		Transport: "stdio", Method: "tools/call", Card: "fs__read", Server: "fs", Tool: "read",
		Definition: strings.Repeat("d", 64),
		Arguments:  json.RawMessage(`{"path":"/home/ada/projects/drawbridge/README.md","token":"x","limit":100}`),
		Effect:     "allow",
	}
	var rules audit.RedactionRules
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = rules.AppendRecord(buf[:0], &r)
	}
}
