package llm_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/google/go-cmp/cmp"
)

const key = "sk-very-secret-0123456789"

func keyed(context.Context) (drawbridge.Secret, error) { return drawbridge.NewSecret(key), nil }

// A request is what a provider was sent.
type request struct {
	Path, Auth string
	Body       any
}

// A provider answers each request with the next of its answers, the last one again and again.
type provider struct {
	*httptest.Server
	mu      sync.Mutex
	got     []request
	answers []func(w http.ResponseWriter)
}

func serve(t *testing.T, answers ...func(w http.ResponseWriter)) *provider {
	t.Helper()
	p := &provider{answers: answers}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	auth := r.Header.Get("Authorization")
	if google := r.Header.Get("X-Goog-Api-Key"); google != "" {
		auth = "google " + google
	}
	q := request{Path: r.URL.String(), Auth: auth}
	_ = json.Unmarshal(raw, &q.Body)
	p.mu.Lock()
	p.got = append(p.got, q)
	answer := p.answers[0]
	if len(p.answers) > 1 {
		p.answers = p.answers[1:]
	}
	p.mu.Unlock()
	answer(w)
}

func (p *provider) requests() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

func says(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { io.WriteString(w, body) }
}

func fails(status int, body string, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func packed(values ...float32) string {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func object(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func embedder(t *testing.T, o llm.EmbeddingOptions) *llm.EmbeddingClient {
	t.Helper()
	e, err := llm.NewEmbeddingClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestEmbedOnTheWire shows what each provider is sent, and how its answer is read.
func TestEmbedOnTheWire(t *testing.T) {
	const two = `{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0,2]},{"index":0,"embedding":[1,0.5]}],"model":"m","usage":{}}`
	for _, tt := range []struct {
		name   string
		o      llm.EmbeddingOptions
		base   string
		role   index.EmbedRole
		answer string
		want   request
	}{
		{"openai", llm.EmbeddingOptions{Model: "m", Dimensions: 2}, "", index.RoleQuery, two,
			request{"/v1/embeddings", "Bearer " + key, object(t, `{"model":"m","input":["a","b"],"dimensions":2}`)}},
		{"a base with a version", llm.EmbeddingOptions{Model: "m"}, "/v1/", index.RoleQuery, two,
			request{"/v1/embeddings", "Bearer " + key, object(t, `{"model":"m","input":["a","b"]}`)}},
		{"a base with a path of its own", llm.EmbeddingOptions{Model: "m"}, "/openai/deployments/x",
			index.RoleQuery, two,
			request{"/openai/deployments/x/embeddings", "Bearer " + key, object(t, `{"model":"m","input":["a","b"]}`)}},
		{"prefixes of a question", llm.EmbeddingOptions{Model: "m", Provider: llm.ProviderOllama,
			QueryPrefix: "query: ", DocumentPrefix: "passage: "}, "", index.RoleQuery, two,
			request{"/v1/embeddings", "Bearer " + key, object(t, `{"model":"m","input":["query: a","query: b"]}`)}},
		{"prefixes of a document", llm.EmbeddingOptions{Model: "m", QueryPrefix: "query: ",
			DocumentPrefix: "passage: "}, "", index.RoleDocument, two,
			request{"/v1/embeddings", "Bearer " + key, object(t, `{"model":"m","input":["passage: a","passage: b"]}`)}},
		{"voyage, a question", llm.EmbeddingOptions{Model: "m", Provider: llm.ProviderVoyage, Dimensions: 2}, "",
			index.RoleQuery, two,
			request{"/v1/embeddings", "Bearer " + key,
				object(t, `{"model":"m","input":["a","b"],"input_type":"query","output_dimension":2}`)}},
		{"voyage, a document", llm.EmbeddingOptions{Model: "m", Provider: llm.ProviderVoyage}, "",
			index.RoleDocument, two,
			request{"/v1/embeddings", "Bearer " + key,
				object(t, `{"model":"m","input":["a","b"],"input_type":"document"}`)}},
		{"gemini, a question", llm.EmbeddingOptions{Model: "g", Provider: llm.ProviderGemini, Dimensions: 2}, "",
			index.RoleQuery,
			`{"embeddings":[{"values":[1,0.5]},{"values":[0,2]}]}`,
			request{"/v1beta/models/g:batchEmbedContents", "google " + key, object(t, `{"requests":[
				{"model":"models/g","content":{"parts":[{"text":"a"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":2},
				{"model":"models/g","content":{"parts":[{"text":"b"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":2}]}`)}},
		{"gemini, a document", llm.EmbeddingOptions{Model: "models/g", Provider: llm.ProviderGemini}, "",
			index.RoleDocument,
			`{"embeddings":[{"values":[1,0.5]},{"values":[0,2]}]}`,
			request{"/v1beta/models/g:batchEmbedContents", "google " + key, object(t, `{"requests":[
				{"model":"models/g","content":{"parts":[{"text":"a"}]},"taskType":"RETRIEVAL_DOCUMENT"},
				{"model":"models/g","content":{"parts":[{"text":"b"}]},"taskType":"RETRIEVAL_DOCUMENT"}]}`)}},
		{"Base64, in the order of the texts", llm.EmbeddingOptions{Model: "m"}, "", index.RoleQuery,
			`{"data":[{"embedding":"` + packed(1, 0.5) + `"},{"embedding":"` + packed(0, 2) + `"}]}`,
			request{"/v1/embeddings", "Bearer " + key, object(t, `{"model":"m","input":["a","b"]}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, says(tt.answer))
			tt.o.BaseURL, tt.o.FindKey = p.URL+tt.base, keyed
			got, err := embedder(t, tt.o).Embed(t.Context(), tt.role, []string{"a", "b"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]float32{{1, 0.5}, {0, 2}}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]request{tt.want}, p.requests()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEmbedInBatches(t *testing.T) {
	p := serve(t, says(`{"data":[{"embedding":[1]},{"embedding":[2]}]}`), says(`{"data":[{"embedding":[3]}]}`))
	e := embedder(t, llm.EmbeddingOptions{Endpoint: llm.Endpoint{BaseURL: p.URL}, Model: "m", Batch: 2})
	got, err := e.Embed(t.Context(), index.RoleDocument, []string{"a", strings.Repeat("é", 5000), "\xff"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float32{{1}, {2}, {3}}, got); diff != "" {
		t.Error(diff)
	}
	want := []request{
		{"/v1/embeddings", "", map[string]any{"model": "m", "input": []any{"a", strings.Repeat("é", 4000)}}},
		{"/v1/embeddings", "", map[string]any{"model": "m", "input": []any{"�"}}},
	}
	if diff := cmp.Diff(want, p.requests()); diff != "" {
		t.Error(diff)
	}
}

// TestNoVectorsAreBetterThanWrongOnes has a provider send answers that are not what was asked for: none of them is
// taken in part.
func TestNoVectorsAreBetterThanWrongOnes(t *testing.T) {
	for name, answer := range map[string]string{
		"one too few":         `{"data":[{"embedding":[1,2]}]}`,
		"one too many":        `{"data":[{"embedding":[1,2]},{"embedding":[1,2]},{"embedding":[1,2]}]}`,
		"one twice":           `{"data":[{"index":1,"embedding":[1,2]},{"index":1,"embedding":[1,2]}]}`,
		"out of place":        `{"data":[{"index":0,"embedding":[1,2]},{"index":2,"embedding":[1,2]}]}`,
		"below":               `{"data":[{"index":0,"embedding":[1,2]},{"index":-1,"embedding":[1,2]}]}`,
		"lengths that differ": `{"data":[{"embedding":[1,2]},{"embedding":[1,2,3]}]}`,
		"another length":      `{"data":[{"embedding":[1,2,3]},{"embedding":[1,2,3]}]}`,
		"empty":               `{"data":[{"embedding":[]},{"embedding":[]}]}`,
		"zero":                `{"data":[{"embedding":[0,0]},{"embedding":[1,2]}]}`,
		"not finite":          `{"data":[{"embedding":"` + packed(float32(math.NaN()), 1) + `"},{"embedding":[1,2]}]}`,
		"infinite": `{"data":[{"embedding":"` + packed(float32(math.Inf(1)), 1) +
			`"},{"embedding":[1,2]}]}`,
		"too large a number":  `{"data":[{"embedding":[1e99,2]},{"embedding":[1,2]}]}`,
		"half a number":       `{"data":[{"embedding":"AAAA"},{"embedding":[1,2]}]}`,
		"no Base64":           `{"data":[{"embedding":"%"},{"embedding":[1,2]}]}`,
		"null":                `{"data":[{"embedding":null},{"embedding":[1,2]}]}`,
		"another shape":       `{"embeddings":[[1,2],[1,2]]}`,
		"text":                `it works!`,
		"nothing":             ``,
		"an error with a 200": `{"error":{"message":"` + key + `"}}`,
		"very long": `{"data":[{"embedding":[1,2]},{"embedding":[1,2]}],"x":"` +
			strings.Repeat("x", 4<<20) + `"}`,
		"a list":               `[]`,
		"text where numbers":   `{"data":[{"embedding":["1","2"]},{"embedding":[1,2]}]}`,
		"an index of a kind":   `{"data":[{"index":"0","embedding":[1,2]},{"embedding":[1,2]}]}`,
		"half of the answer":   `{"data":[{"embedding":[1,2]},{"embedding":[1,`,
		"vectors of a vectors": `{"data":[{"embedding":[[1,2]]},{"embedding":[[1,2]]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, says(answer))
			o := llm.EmbeddingOptions{Endpoint: llm.Endpoint{BaseURL: p.URL, FindKey: keyed}, Model: "m", Dimensions: 2}
			got, err := embedder(t, o).Embed(t.Context(), index.RoleDocument, []string{"a", "b"})
			if err == nil || got != nil || strings.Contains(err.Error(), key) {
				t.Errorf("%v, %v", got, err)
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestWhatAProviderAnswersInstead shows the error of each answer, how often it is asked, and whether the texts are at
// fault. What a provider writes in words of its own, which may be the key, is not shown.
func TestWhatAProviderAnswersInstead(t *testing.T) {
	said := `{"error":{"message":"Incorrect API key provided: ` + key + `","code":"%s"}}`
	for _, tt := range []struct {
		name    string
		answer  func(http.ResponseWriter)
		want    string
		asked   int
		refused bool
	}{
		{"key", fails(401, fmt.Sprintf(said, "invalid_api_key")),
			"embed by m: the key is refused (401, invalid_api_key)", 1, false},
		{"a key for a word", fails(401, fmt.Sprintf(said, key)), "embed by m: the key is refused (401)", 1, false},
		{"model", fails(404, `{"error":"model 'm' not found"}`),
			"embed by m: the model or the address does not exist (404)", 1, false},
		{"text", fails(400, fmt.Sprintf(said, "context_length_exceeded")),
			"embed by m: the request is refused (400, context_length_exceeded)", 1, true},
		{"tei", fails(413, `{"error":"batch size 40 > 32","error_type":"Validation"}`),
			"embed by m: the request is refused (413, Validation)", 1, true},
		{"google", fails(422, `{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT"}}`),
			"embed by m: the request is refused (422, INVALID_ARGUMENT)", 1, true},
		{"credit", fails(429, fmt.Sprintf(said, "insufficient_quota"), "Retry-After", "3600"),
			"embed by m: too many requests, or no credit left (429, insufficient_quota)", 1, false},
		{"down", fails(503, "<html>", "Retry-After", "0"), "embed by m: the provider answers (503)", 3, false},
		{"never", fails(501, ""), "embed by m: the provider answers (501)", 1, false},
		{"redirect", fails(307, "", "Location", "http://192.0.2.1/steal"),
			"embed by m: the address leads elsewhere, and is not followed (307)", 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, tt.answer)
			o := llm.EmbeddingOptions{Endpoint: llm.Endpoint{BaseURL: p.URL, FindKey: keyed}, Model: "m"}
			_, err := embedder(t, o).Embed(t.Context(), index.RoleDocument, []string{"a"})
			if err == nil || err.Error() != tt.want || errors.Is(err, index.ErrTextRefused) != tt.refused {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if n := len(p.requests()); n != tt.asked {
				t.Errorf("asked %d times, want %d", n, tt.asked)
			}
		})
	}
}

// TestTriesAgain has a provider that is busy at first: what it answers then counts, and the wait that it wants is
// passed on where it is too long to be waited for.
func TestTriesAgain(t *testing.T) {
	p := serve(t, fails(429, ""), fails(500, ""), says(`{"data":[{"embedding":[1]}]}`))
	e := embedder(t, llm.EmbeddingOptions{Endpoint: llm.Endpoint{BaseURL: p.URL}, Model: "m"})
	if got, err := e.Embed(t.Context(), index.RoleQuery, []string{"a"}); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
	p = serve(t, fails(429, "", "Retry-After", "90"))
	e = embedder(t, llm.EmbeddingOptions{Endpoint: llm.Endpoint{BaseURL: p.URL}, Model: "m"})
	_, err := e.Embed(t.Context(), index.RoleQuery, []string{"a"})
	if later, ok := errors.AsType[index.RetryAfterError](err); !ok || later.RetryAfter() != 90*time.Second {
		t.Error(err)
	}
}

// TestNoWaitBeyondTheDeadline asks a busy provider with little time: the answer is there before the time is over.
func TestNoWaitBeyondTheDeadline(t *testing.T) {
	p := serve(t, fails(429, "", "Retry-After", "10"))
	e := embedder(t, llm.EmbeddingOptions{Endpoint: llm.Endpoint{BaseURL: p.URL}, Model: "m"})
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	if _, err := e.Embed(ctx, index.RoleQuery, []string{"a"}); err == nil || ctx.Err() != nil ||
		len(p.requests()) != 1 {
		t.Error(err, ctx.Err(), p.requests())
	}
}

func TestNoServerThere(t *testing.T) {
	p := serve(t, says(""))
	p.Close()
	e := embedder(t, llm.EmbeddingOptions{Endpoint: llm.Endpoint{BaseURL: p.URL, FindKey: keyed}, Model: "m"})
	_, err := e.Embed(t.Context(), index.RoleQuery, []string{"a secret question"})
	if err == nil || !strings.HasPrefix(err.Error(), "embed by m: the provider cannot be reached: ") ||
		strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// TestTheKeyIsFoundOnce looks for the key when it is first needed, and again after it was refused.
func TestTheKeyIsFoundOnce(t *testing.T) {
	p := serve(t, says(`{"data":[{"embedding":[1]}]}`), says(`{"data":[{"embedding":[1]}]}`), fails(401, ""),
		says(`{"data":[{"embedding":[1]}]}`))
	found := 0
	e := embedder(t, llm.EmbeddingOptions{Model: "m", Endpoint: llm.Endpoint{BaseURL: p.URL,
		FindKey: func(context.Context) (drawbridge.Secret, error) {
			if found++; found == 3 {
				return drawbridge.Secret{}, errors.New("the file k is not there")
			}
			return drawbridge.NewSecret(fmt.Sprint("k", found)), nil
		}}})
	for range 4 {
		_, _ = e.Embed(t.Context(), index.RoleQuery, []string{"a"})
	}
	var used []string
	for _, r := range p.requests() {
		used = append(used, r.Auth)
	}
	if diff := cmp.Diff([]string{"Bearer k1", "Bearer k1", "Bearer k1", "Bearer k2"}, used); diff != "" {
		t.Error(diff)
	}
	p.answers = []func(http.ResponseWriter){fails(403, "")}
	_, _ = e.Embed(t.Context(), index.RoleQuery, []string{"a"})
	_, err := e.Embed(t.Context(), index.RoleQuery, []string{"a"})
	if err == nil || err.Error() != "embed by m: find the key: the file k is not there" {
		t.Error(err)
	}
}

func TestRefusedOptions(t *testing.T) {
	for _, tt := range []struct {
		o    llm.EmbeddingOptions
		want string
	}{
		{llm.EmbeddingOptions{}, "a model is needed"},
		{llm.EmbeddingOptions{Provider: "mine", Model: "m"},
			"the provider is none of openai, ollama, gemini and voyage"},
		{llm.EmbeddingOptions{Model: "m", Dimensions: 10000}, "batch must be above 0, and dimensions at most 8192"},
		{llm.EmbeddingOptions{Model: "m", Endpoint: llm.Endpoint{BaseURL: "ftp://x"}},
			"the address must be an https:// URL with a host"},
		{llm.EmbeddingOptions{Model: "m", Endpoint: llm.Endpoint{BaseURL: "https://u:p@x"}},
			"the address must be without user, query and fragment: a key stands in api_key"},
		{llm.EmbeddingOptions{Model: "m", Endpoint: llm.Endpoint{BaseURL: "https://x/v1?key=1"}},
			"the address must be without user, query and fragment: a key stands in api_key"},
		{llm.EmbeddingOptions{Model: "m", Endpoint: llm.Endpoint{BaseURL: "http://models.example.com", FindKey: keyed}},
			"a key goes over https:// only, but to this machine and its network"},
		{llm.EmbeddingOptions{Model: "m", Endpoint: llm.Endpoint{BaseURL: "http://models.example.com"}}, ""},
		{llm.EmbeddingOptions{Model: "m", Endpoint: llm.Endpoint{BaseURL: "http://10.1.2.3", FindKey: keyed}}, ""},
		{llm.EmbeddingOptions{Model: "m", Endpoint: llm.Endpoint{BaseURL: "http://tei:8080", FindKey: keyed}}, ""},
		{llm.EmbeddingOptions{Model: "m"}, ""},
	} {
		_, err := llm.NewEmbeddingClient(tt.o)
		if got := fmt.Sprint(err); err == nil && tt.want != "" || err != nil && got != tt.want {
			t.Errorf("%+v: %v, want %s", tt.o, err, tt.want)
		}
	}
}

// TestModelNamesTheSpace names what vectors depend on, and nothing else.
func TestModelNamesTheSpace(t *testing.T) {
	for _, tt := range []struct {
		o    llm.EmbeddingOptions
		want string
	}{
		{llm.EmbeddingOptions{Model: "m", QueryPrefix: "q: "}, "openai:m"},
		{llm.EmbeddingOptions{Model: "m", Provider: llm.ProviderOllama}, "openai:m"},
		{llm.EmbeddingOptions{Model: "m", Provider: llm.ProviderVoyage, Dimensions: 256}, "voyage:m@256"},
		{llm.EmbeddingOptions{Model: "m", DocumentPrefix: "passage: "}, "openai:m+707ad539"},
	} {
		if got := embedder(t, tt.o).Model(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.o, got, tt.want)
		}
	}
}

func TestRerank(t *testing.T) {
	asked := object(t, `{"model":"r","query":"q","documents":["a","b","c"]}`)
	for _, tt := range []struct {
		name, kind, path, answer string
		want                     request
	}{
		{"cohere, jina", "", "/v2",
			`{"id":"x","results":[{"index":2,"relevance_score":0.9},{"index":0,"relevance_score":0.5},{"index":1,"relevance_score":-0.1}]}`,
			request{"/v2/rerank", "Bearer " + key, asked}},
		{"voyage", llm.RerankCohere, "/v1/rerank",
			`{"object":"list","data":[{"index":2,"relevance_score":0.9},{"index":0,"relevance_score":0.5},{"index":1,"relevance_score":-0.1}]}`,
			request{"/v1/rerank", "Bearer " + key, asked}},
		{"text-embeddings-inference", llm.RerankTEI, "",
			`[{"index":2,"score":0.9},{"index":0,"score":0.5},{"index":1,"score":-0.1}]`,
			request{"/rerank", "Bearer " + key, object(t, `{"query":"q","texts":["a","b","c"],"truncate":true}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, says(tt.answer))
			r, err := llm.NewRerankClient(llm.RerankOptions{Endpoint: llm.Endpoint{BaseURL: p.URL + tt.path,
				FindKey: keyed}, Kind: tt.kind, Model: "r"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			got, err := r.Rerank(t.Context(), "q", []string{"a", "b", "c"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]float64{0.5, -0.1, 0.9}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]request{tt.want}, p.requests()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoScoresAreBetterThanWrongOnes(t *testing.T) {
	for _, answer := range []string{
		`{}`, `[]`, `{"results":[{"index":0,"relevance_score":1}]}`, `[{"index":0,"score":1},{"index":0,"score":1}]`,
		`[{"index":0,"score":1},{"index":2,"score":1}]`, `[{"index":0},{"index":1,"score":1}]`,
		`[{"score":1},{"score":1}]`, `"x"`, ``,
	} {
		p := serve(t, says(answer))
		r, err := llm.NewRerankClient(llm.RerankOptions{Endpoint: llm.Endpoint{BaseURL: p.URL}, Kind: llm.RerankTEI})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Rerank(t.Context(), "q", []string{"a", "b"}); err == nil {
			t.Errorf("%s: %v", answer, got)
		}
		_ = r.Close()
	}
}
