package mcptest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A LetterModel is a model server for tests. It embeds a text as the counts of its letters, and ranks documents by the
// letters that they share with the query. It serves OpenAI's /v1/embeddings and Cohere's /rerank.
type LetterModel struct {
	*httptest.Server
	key string

	// mu guards the fields below.
	mu    sync.Mutex
	down  bool
	texts []string
}

// StartLetterModel starts a LetterModel on a free port of the loopback interface, which is closed when the test ends.
// Requests must have the API key; an empty key means that none is required.
func StartLetterModel(t testing.TB, key string) *LetterModel {
	t.Helper()
	l := &LetterModel{key: key}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

// SetDown makes the server answer all requests with status 503 if down is true. If down is false, it answers normally
// again.
func (l *LetterModel) SetDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// EmbeddedTexts returns the texts that were embedded since the last call of EmbeddedTexts.
func (l *LetterModel) EmbeddedTexts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts := l.texts
	l.texts = nil
	return texts
}

// ServeHTTP handles requests for embeddings and rankings.
func (l *LetterModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Input, Documents []string
		Query            string
	}
	raw, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case l.key != "" && r.Header.Get("Authorization") != "Bearer "+l.key:
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
			"message": "Incorrect API key provided: " + r.Header.Get("Authorization"), "code": "invalid_api_key",
		}})
	case json.Unmarshal(raw, &body) != nil:
		w.WriteHeader(http.StatusBadRequest)
	case strings.HasSuffix(r.URL.Path, "/rerank"):
		var results []any
		for i, text := range body.Documents {
			results = append(results, map[string]any{"index": i,
				"relevance_score": sharedLetters(letterCounts(body.Query), letterCounts(text))})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	case strings.HasSuffix(r.URL.Path, "/embeddings"):
		l.texts = append(l.texts, body.Input...)
		var data []any
		for i, text := range body.Input {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": letterCounts(text)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func letterCounts(text string) []int {
	v := make([]int, 26)
	for _, c := range strings.ToLower(text) {
		if c >= 'a' && c <= 'z' {
			v[c-'a']++
		}
	}
	return v
}

func sharedLetters(a, b []int) (n int) {
	for i := range a {
		n += min(a[i], b[i])
	}
	return n
}
