package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestNormaliseSchema compares whole schemas, as the providers get them.
func TestNormaliseSchema(t *testing.T) {
	a, err := txtar.ParseFile("testdata/chat/schemas.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, f := range a.Files {
		name, dialect, isResult := strings.Cut(f.Name, ".")
		if !isResult {
			sources[name] = string(f.Data)
			continue
		}
		d := map[string]schemaDialect{"all": {}, "chat": chatSchema, "gemini": geminiSchema}[dialect]
		got := normaliseSchema(json.RawMessage(sources[name]), d)
		if diff := cmp.Diff(strings.TrimSpace(string(f.Data)), string(got)); diff != "" {
			t.Errorf("%s: %s", f.Name, diff)
		}
	}
}

// TestSchemaBombs normalises schemas that would become very large: it ends soon, with a small result.
func TestSchemaBombs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 30 {
		fmt.Fprintf(&laughs, `"d%d":{"type":"object","properties":{"x":{"$ref":"#/$defs/d%d"},"y":{"$ref":"#/$defs/d%d"}}},`,
			i, i+1, i+1)
	}
	laughs.WriteString(`"d30":{"type":"string"}}}`)
	for name, schema := range map[string]string{
		"many references": laughs.String(),
		"itself":          `{"$ref":"#"}`,
		"two in a circle": `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"deep":            strings.Repeat(`{"type":"object","properties":{"a":`, 400) + "{}" + strings.Repeat("}}", 400),
		"wide":            `{"type":"object","properties":{` + strings.Repeat(`"a":{"description":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},`, 9000) + `"b":{}}}`,
	} {
		began := time.Now()
		out := normaliseSchema(json.RawMessage(schema), schemaDialect{})
		if took := time.Since(began); took > 5*time.Second || len(out) > maxSchemaBytes || !json.Valid(out) {
			t.Errorf("%s: %d bytes in %v", name, len(out), took)
		}
	}
}
