package llm

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzAnswers reads whatever a provider says: it returns as many vectors and scores as there were texts, or an error.
func FuzzAnswers(f *testing.F) {
	f.Add(`{"data":[{"index":0,"embedding":[1,2]}]}`, 1)
	f.Add(`{"data":[{"embedding":"AACAPw=="},{"embedding":[1]}]}`, 2)
	f.Add(`[{"index":0,"score":1}]`, 1)
	f.Add(`{"results":[{"index":1,"relevance_score":1},{"index":0,"relevance_score":2}]}`, 2)
	f.Fuzz(func(t *testing.T, answer string, texts int) {
		if texts < 1 || texts > 100 {
			return
		}
		var a openAIResponse
		if json.Unmarshal([]byte(answer), &a) == nil {
			vectors, err := a.orderedVectors(texts)
			if err == nil && checkVectors(vectors, texts, 0) == nil {
				for _, v := range vectors {
					if len(v) == 0 || len(v) != len(vectors[0]) {
						t.Error(vectors)
					}
				}
			}
		}
		if scores, err := parseScores([]byte(answer), texts); err == nil && len(scores) != texts {
			t.Error(scores)
		}
	})
}

// FuzzRefusal reads whatever a provider says is wrong: nothing of it passes but a word.
func FuzzRefusal(f *testing.F) {
	f.Add(`{"error":{"code":"x_y","message":"m"}}`, "10")
	f.Add(`{"error":"m","error_type":"Overloaded"}`, "Sun, 06 Nov 1994 08:49:37 GMT")
	f.Fuzz(func(t *testing.T, body, after string) {
		for _, r := range providerErrorCode([]byte(body)) {
			if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				t.Errorf("%q", body)
			}
		}
		if parseRetryAfter(after, time.Unix(1e9, 0)) < 0 {
			t.Errorf("%q", after)
		}
	})
}
