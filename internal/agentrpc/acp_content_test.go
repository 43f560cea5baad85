package agentrpc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// FuzzPrompt reads prompts of any form. An accepted prompt has a part, its texts are those of the blocks, and each
// image has a type and data.
func FuzzPrompt(f *testing.F) {
	for _, seed := range []string{
		`[{"type":"text","text":"a"},{"type":"resource_link","name":"n","uri":"u"}]`,
		`[{"type":"resource","resource":{"uri":"u","text":""}},{"type":"image","mimeType":"image/png","data":"AAAA"}]`,
		`[{"type":"resource","resource":{"uri":"u","mimeType":"image/png","blob":"AAAA"}}]`,
		`[{"type":"resource"}]`, `[{"type":"audio","data":"AAAA"}]`, `[{"type":"image","mimeType":"text/html","data":"AAAA"}]`,
		`[{"type":"text"}]`, `[]`, `null`, `[null]`, `[{"type":"text","text":"\u0000\u2028\ud800"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, prompt []byte) {
		var p acpParams
		raw, err := json.Marshal(map[string]json.RawMessage{"prompt": prompt})
		if err != nil || decodeParams(raw, &p) != nil {
			return
		}
		parts, problem := promptParts(p.Prompt)
		if (problem == nil) != (len(parts) > 0) {
			t.Fatalf("%q is read as %v, %v", prompt, parts, problem)
		}
		if problem != nil {
			return
		}
		for i, part := range parts {
			if part.Image != nil && (len(part.Image.Data) == 0 || !strings.HasPrefix(part.Image.MIMEType, "image/")) ||
				part.Image == nil && (part.Text == "" || i > 0) {
				t.Errorf("%q has the part %+v", prompt, part)
			}
		}
		whole := drawbridge.Message{Parts: parts}.Text()
		for _, b := range p.Prompt {
			if b.Type == "text" && !strings.Contains(whole, strings.TrimSpace(b.Text)) {
				t.Errorf("%q lost the text %q: %q", prompt, b.Text, whole)
			}
		}
	})
}

// FuzzCalls shows calls of any form: each change has a path and a new text, and a plan has known states only.
func FuzzCalls(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a","oldText":"x","newText":"y"}`, `{"path":"/a","edits":[{"oldText":"x"},{}]}`, `{"path":"a","content":""}`,
		`{"items":[{"text":"a","status":"done"},{"text":"b","state":"active","weight":"high"},{"status":"done","state":"done"}]}`,
		`{"items":null}`, `[]`, `{"path":7}`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, tool := range []string{"edit", "write", "read"} {
			for _, c := range changesOf(tool, raw, "/dir") {
				if c.Type != "diff" || !strings.HasPrefix(c.Path, "/") || c.NewText == nil || tool == "read" {
					t.Errorf("%s %q has the change %+v", tool, raw, c)
				}
			}
		}
		for _, e := range planOf("todo", raw) {
			if e.Status != "pending" && e.Status != "in_progress" && e.Status != "completed" ||
				e.Priority != "low" && e.Priority != "medium" && e.Priority != "high" {
				t.Errorf("%q has the entry %+v", raw, e)
			}
		}
	})
}
