package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// TestContentKey has the published vectors of the rule.
func TestContentKey(t *testing.T) {
	for _, tt := range []struct{ server, tool, schema, want string }{
		{"fs", "read_file", ``, "bk_729650ff4b89b19bc3a9ef3f8260cb7b"},
		{"fs", "read_file", `null`, "bk_729650ff4b89b19bc3a9ef3f8260cb7b"},
		{"fs", "read_file", `{}`, "bk_ae31f46b67ac4f789fc2f7b97df01ab7"},
		{"fs", "read_file", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`,
			"bk_65e2785fae1e5bc7bdccc2e46a498731"},
		{"fs", "read_file", `{ "required": ["path"], "properties": {"path": {"type": "string"}}, "type": "object" }`,
			"bk_65e2785fae1e5bc7bdccc2e46a498731"},
		{"github", "create_issue",
			`{"type":"object","properties":{"title":{"type":"string"},"body":{"type":"string"}},"required":["title"]}`,
			"bk_ba6bd1fa9cc8ee5e269d8fa370b46114"},
		{"db", "query", `{"type":"object","properties":{"10":{"type":"string"},"a":{"type":"number","default":1.5,"minimum":1e-7,"maximum":1e21},"2":{"type":"string"},"b":{"type":"integer","maximum":100.0}}}`, "bk_6414c5e1d71b39cfa31846b45942f8f6"},
		{"wiki", "búsqueda",
			"{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\",\"description\":\"línea\\n\\u0001\u2028é \\ud83d\\ude00\"}}}", "bk_ad08ba2daf95c9a987c95a6503c54ad8"},
		{"s", "t", `{"x":null,"e":[],"n":-0.0,"big":9007199254740993}`, "bk_dfb13382560d3136f63fcd07569ac85e"},
		{"s", "t", `{"e":[],"n":-0,"big":9007199254740993}`, "bk_88c3e9fb550ce91d3ce35459b90d718d"},
		{"a", "b__c", `{"type":"object"}`, "bk_7bca693727a5d06b2d59a0dafa71c4e2"},
		{"a__b", "c", `{"type":"object"}`, "bk_7bca693727a5d06b2d59a0dafa71c4e2"},
		{"s", "t", `{"😀":2,"\ue000":1}`, "bk_f2bdc549e8bc99aee37a02e04f433266"},
	} {
		if got := ContentKey(QualifiedName(tt.server, tt.tool), json.RawMessage(tt.schema)); string(got) != tt.want {
			t.Errorf("ContentKey(%s, %s, %s) = %s, want %s", tt.server, tt.tool, tt.schema, got, tt.want)
		}
	}
}

func TestContentKeyOfNoJSON(t *testing.T) {
	seen := map[CardKey]string{}
	for _, schema := range []string{`{}`, `null`, `{`, `{}}`, `{} `[:2] + "x", `"`, `{"a":1,}`, "\"\xff\"",
		strings.Repeat("[", 600) + strings.Repeat("]", 600)} {
		key := ContentKey("s__t", json.RawMessage(schema))
		if other, ok := seen[key]; ok {
			t.Errorf("%.20q and %.20q have one key", schema, other)
		}
		seen[key] = schema
	}
}

func TestCardKey(t *testing.T) {
	card := EnrolledCard{Server: "fs", Tool: "read_file", Definition: json.RawMessage(
		` { "name":"other", "InputSchema":1, "inputSchema":{"type":1}, "a":[{"inputSchema":2}], "input\u0053chema" : {} } `)}
	if got, want := card.Key(), ContentKey("fs__read_file", json.RawMessage(`{}`)); got != want {
		t.Errorf("key of a card = %s, want that of its last inputSchema, %s", got, want)
	}
	card.Definition = json.RawMessage(`[]`)
	if got, want := card.Key(), ContentKey("fs__read_file", nil); got != want {
		t.Errorf("key of a card without a schema = %s, want %s", got, want)
	}
}

// shuffled writes a JSON value again with the members of its objects in another order and more blanks. It keeps numbers
// and, since the last of two members with one name counts, drops the ones before.
func shuffled(raw json.RawMessage, r *rand.Rand) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return raw
		}
		var parts []string
		for name, value := range members {
			quoted, _ := json.Marshal(name) // a string
			parts = append(parts, fmt.Sprintf("\t%s : %s ", quoted, shuffled(value, r)))
		}
		slices.Sort(parts)
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return json.RawMessage("{" + strings.Join(parts, ",") + "\n}")
	case '[':
		var elements []json.RawMessage
		if json.Unmarshal(raw, &elements) != nil {
			return raw
		}
		var parts []string
		for _, e := range elements {
			parts = append(parts, string(shuffled(e, r)))
		}
		return json.RawMessage("[ " + strings.Join(parts, "\r,") + "]")
	}
	return raw
}

// FuzzContentKey is row FZ-9: a key stays where order, blanks and the forms of numbers change.
func FuzzContentKey(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"type":"object","properties":{"10":{"default":1.50},"9":{"maximum":1e21}},"required":["a","b"]}`,
		`{"a":1,"\u0061":2,"\ud800":[-0.0,1e-7,123456789012345678901234567890]}`, `"\ud83d\ude00\ud83d"`, `{"a":`,
		"\"\xff\"", `[[[]]]`,
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, schema []byte, seed uint64) {
		key := ContentKey("s__t", schema)
		canonical, ok := rawjson.AppendCanonical(nil, schema, rawjson.DoubleNumbers)
		if ok && !json.Valid(schema) {
			t.Fatalf("encoding/json refuses it: %q", schema)
		}
		if !ok {
			return
		}
		if again, ok := rawjson.AppendCanonical(nil, canonical, rawjson.DoubleNumbers); !ok ||
			!bytes.Equal(again, canonical) {
			t.Fatalf("canonical of %q\n is %q\nand of that %q", schema, canonical, again)
		}
		if got := ContentKey("s__t", canonical); got != key {
			t.Fatalf("%q has the key %s, its canonical form %s", schema, key, got)
		}
		if strings.Contains(string(canonical), `\ud`) {
			return // encoding/json cannot say half a surrogate pair
		}
		other := shuffled(schema, rand.New(rand.NewPCG(seed, seed)))
		if got := ContentKey("s__t", other); got != key {
			t.Fatalf("%q has the key %s, %q has %s", schema, key, other, got)
		}
	})
}

func TestQualify(t *testing.T) {
	for _, tt := range []struct{ server, tool, want string }{
		{"github", "create_issue", "github__create_issue"},
		{"a", "b__c", "a__b__c"},
		{"a", "_b", "a___b"},
		{"a", "", "a__"},
	} {
		if got := QualifiedName(tt.server, tt.tool); got != tt.want {
			t.Errorf("Qualify(%q, %q) = %q, want %q", tt.server, tt.tool, got, tt.want)
		}
	}
}

func TestKeysAscend(t *testing.T) {
	now := time.Date(2026, 7, 28, 14, 2, 0, 0, time.UTC)
	var keys KeyGenerator
	var got []CardKey
	for _, at := range []time.Time{now, now, now.Add(-time.Hour), now, now.Add(time.Millisecond), {}, time.Unix(-1, 0),
		now.Add(time.Second)} {
		for range 1000 {
			got = append(got, keys.Next(at))
		}
	}
	for i, key := range got {
		if len(key) != len("bk_")+26 || !strings.HasPrefix(string(key), "bk_") {
			t.Fatalf("%q is not a key", key)
		}
		if i > 0 && key <= got[i-1] {
			t.Fatalf("key %d, %s, is not after %s", i, key, got[i-1])
		}
	}
	if a, b := new(KeyGenerator).Next(now), new(KeyGenerator).Next(now); a == b || a[:13] != b[:13] {
		t.Errorf("two owners made %s and %s in one millisecond; want one time and two keys", a, b)
	}
	if diff := cmp.Diff(CardKey("bk_01KYMGGHY0"), got[0][:13]); diff != "" {
		t.Error("the time in a key:", diff)
	}
}

func BenchmarkContentKey(b *testing.B) {
	schema := json.RawMessage(
		`{"type":"object","properties":{"path":{"type":"string","description":"Where to read from, as an absolute path"},` +
			`"limit":{"type":"integer","minimum":0,"maximum":1000,"default":100},"follow":{"type":"boolean"}},"required":["path"],"additionalProperties":false}`)
	b.SetBytes(int64(len(schema)))
	b.ReportAllocs()
	for b.Loop() {
		ContentKey("filesystem__read_file", schema)
	}
}
