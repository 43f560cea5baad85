package drawbridge_test

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestResultText shows how each kind of content is shown to a person or a model.
func TestResultText(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"one text", `{"content":[{"type":"text","text":"a\n b "}]}`, "a\n b "},
		{"parts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\n\nb"},
		{"image", `{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}`,
			"a\n\n[Image: image/png]"},
		{"audio", `{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}`, "[Audio: audio/wav]"},
		{"resource", `{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"x"}}]}`,
			"[Resource: file:///a]\nx"},
		{"resource without text", `{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AAAA"}}]}`,
			"[Resource: file:///a]"},
		{"link", `{"content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}`, "[Resource: file:///a]"},
		{"unknown block", `{"content":[{"type":"hologram"}]}`, "[hologram]"},
		{"empty text", `{"content":[{"type":"text","text":""}]}`, ""},
		{"structured only", `{"structuredContent":{"b":1,"a":[2]}}`, "{\n  \"b\": 1,\n  \"a\": [\n    2\n  ]\n}"},
		{"structured beside text", `{"content":[{"type":"text","text":"a"}],"structuredContent":{"b":1}}`, "a"},
		{"structured beside image", `{"content":[{"type":"image","mimeType":"image/png"}],"structuredContent":[1]}`,
			"[Image: image/png]\n\n[\n  1\n]"},
		{"structured null", `{"content":[],"structuredContent":null}`, ""},
		{"null", `null`, ""},
		{"nothing", ``, ""},
		{"another shape", `{"content":"a"}`, ""},
		{"a block of another shape", `{"content":[7,{"type":"text","text":"a"}]}`, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (drawbridge.Result{Raw: json.RawMessage(tt.raw)}).Text(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestResultIsError(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"isError":true}`: true, `{"isError":false}`: false, `{}`: false, `{"isError":"true"}`: false,
		`{"iserror":true}`: false, ``: false,
	} {
		if got := (drawbridge.Result{Raw: json.RawMessage(raw)}).IsError(); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}
