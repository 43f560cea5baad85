package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		` {"b": 9007199254740993, "a": [1.0, {"d": 1, "c": null}]} `: `{"a":[1.0,{"c":null,"d":1}],"b":9007199254740993}`,
		`{"a":1e400}`: `{"a":1e400}`,
		`{"a":`:       `{"a":`,
		``:            ``,
	} {
		if got := string(rawjson.Canonical(json.RawMessage(in))); got != want {
			t.Errorf("%s is written %s, want %s", in, got, want)
		}
	}
}

func TestAppendTexts(t *testing.T) {
	if got, want := string(rawjson.AppendStrings([]byte(`"a":`), "x", `"`)), `"a":["x","\""]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(rawjson.AppendStrings(nil)); got != "[]" {
		t.Errorf("no texts are %s", got)
	}
}
