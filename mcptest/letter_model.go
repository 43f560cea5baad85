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

// A LetterModel embeds texts by their letters, and judges by the letters that they share. It has OpenAI's
// /v1/embeddings and Cohere's /rerank.
type LetterModel struct {
	*httptest.Server
	key string

	// mu guards what follows.
	mu    sync.Mutex
	down  bool
	texts []string
}

// StartLetterModel starts one on a free port of the loopback interface, which ends with the test. Requests must bring
// the key; empty asks for none.
func StartLetterModel(t testing.TB, key string) *LetterModel {
	t.Helper()
	l := &LetterModel{key: key}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

// SetDown has it answer nothing but that it is not there, or all again.
func (l *LetterModel) SetDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// EmbeddedTexts returns the texts that were embedded since its last call.
func (l *LetterModel) EmbeddedTexts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts := l.texts
	l.texts = nil
	return texts
}

// ServeHTTP answers.
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
