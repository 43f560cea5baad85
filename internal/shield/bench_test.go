package shield_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// BenchmarkDefinition vets a definition of usual size.
func BenchmarkDefinition(b *testing.B) {
	s := newShield(b)
	raw := json.RawMessage(
		`{"name":"create_issue","title":"Create issue","description":"Create a new issue in a GitHub repository. Returns the number and the URL of the issue that was created. Use list_labels first to see which labels there are.","inputSchema":{"type":"object","properties":{"owner":{"type":"string","description":"Repository owner"},"repo":{"type":"string","description":"Repository name"},"title":{"type":"string","description":"Issue title"},"body":{"type":"string","description":"Issue body content, in Markdown"},"labels":{"type":"array","items":{"type":"string"},"description":"Labels to apply to this issue"},"state":{"type":"string","enum":["open","closed"],"default":"open"}},"required":["owner","repo","title"]},"annotations":{"readOnlyHint":false}}`)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := s.CheckDefinition(raw); err != nil || len(r.Reasons) > 0 {
			b.Fatal(r, err)
		}
	}
}

// BenchmarkResult looks at what calls answer: one long word, a sentence, an object, and the results of the sample.
func BenchmarkResult(b *testing.B) {
	s := newShield(b)
	for name, text := range map[string]string{
		"word":     strings.Repeat("0123456789abcdef", 4),
		"sentence": "The weather in Paris is 21 degrees with light wind, see you.",
		"object":   `{"id":12,"name":"Ada","email":"ada@example.com","roles":["admin","dev"],"active":true}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.CheckResultText(text)
			}
		})
	}
	f, err := os.Open("testdata/results_benign.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var texts []string
	size := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct{ Text string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			b.Fatal(err)
		}
		texts = append(texts, row.Text)
		size += len(row.Text)
	}
	b.Run("sample", func(b *testing.B) {
		b.SetBytes(int64(size / len(texts)))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s.CheckResultText(texts[i%len(texts)])
		}
	})
}
