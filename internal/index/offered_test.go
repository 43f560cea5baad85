package index

import (
	"context"
	"testing"
)

// nobody embeds nothing.
type nobody struct{}

func (nobody) Model() string { return "nobody" }

func (nobody) Embed(context.Context, EmbedRole, []string) ([][]float32, error) {
	return nil, context.Canceled
}

// TestOfferedIsBounded offers more than is ever known to a library that nobody runs: the last ones stay.
func TestOfferedIsBounded(t *testing.T) {
	l := NewEmbeddingIndex(nobody{}, EmbeddingIndexOptions{})
	for range 3 {
		l.Offer(make([]Document, maxTexts/2+1))
	}
	l.Offer([]Document{{Name: "last"}})
	if n := len(l.offered); n != maxTexts || l.offered[n-1].Name != "last" {
		t.Errorf("%d are kept, the last %q", n, l.offered[n-1].Name)
	}
}
