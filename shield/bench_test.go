package shield_test

import (
	"encoding/json"
	"testing"
)

// BenchmarkDefinition vets a definition of usual size.
func BenchmarkDefinition(b *testing.B) {
	s := newShield(b)
	raw := json.RawMessage(`{"name":"create_issue","title":"Create issue","description":"Create a new issue in a GitHub repository. Returns the number and the URL of the issue that was created. Use list_labels first to see which labels there are.","inputSchema":{"type":"object","properties":{"owner":{"type":"string","description":"Repository owner"},"repo":{"type":"string","description":"Repository name"},"title":{"type":"string","description":"Issue title"},"body":{"type":"string","description":"Issue body content, in Markdown"},"labels":{"type":"array","items":{"type":"string"},"description":"Labels to apply to this issue"},"state":{"type":"string","enum":["open","closed"],"default":"open"}},"required":["owner","repo","title"]},"annotations":{"readOnlyHint":false}}`)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := s.Definition(raw); err != nil || len(r.Reasons) > 0 {
			b.Fatal(r, err)
		}
	}
}
