package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/google/go-cmp/cmp"
)

const modelsKey = "sk-very-secret-0123456789"

// documents are a desk of three servers.
func documents() []index.Document {
	return []index.Document{
		{ID: "mail__send", Server: "mail", Name: "send", Description: "Send an e-mail to one or more people"},
		{ID: "fs__read_file", Server: "fs", Name: "read_file", Description: "Read the complete contents of a file"},
		{ID: "fs__list_directory", Server: "fs", Name: "list_directory", Description: "List what is in a directory"},
		{ID: "weather__forecast", Server: "weather", Name: "forecast",
			Description: "Weather of the next days at a place"},
	}
}

// A modelsProvider has the interface of OpenAI; what it says is the test's.
type modelsProvider struct {
	*httptest.Server
	// answer is called with the texts of each request.
	answer atomic.Pointer[func(w http.ResponseWriter, r *http.Request, texts []string)]
	asked  atomic.Int64
	auth   atomic.Pointer[string]
}

func modelsServe(t *testing.T) *modelsProvider {
	t.Helper()
	p := &modelsProvider{}
	p.does(embeds(26))
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Input     []string
			Documents []string
		}
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &body)
		auth := r.Header.Get("Authorization")
		p.auth.Store(&auth)
		p.asked.Add(1)
		(*p.answer.Load())(w, r, append(body.Input, body.Documents...))
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *modelsProvider) does(answer func(w http.ResponseWriter, r *http.Request, texts []string)) {
	p.answer.Store(&answer)
}

// embeds counts letters.
func embeds(dimension int) func(http.ResponseWriter, *http.Request, []string) {
	return func(w http.ResponseWriter, _ *http.Request, texts []string) {
		var data []any
		for i, text := range texts {
			v := make([]float32, dimension)
			for _, r := range strings.ToLower(text) {
				if r >= 'a' && r <= 'z' {
					v[int(r-'a')%dimension]++
				}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}
}

func modelsFails(status int) func(http.ResponseWriter, *http.Request, []string) {
	return func(w http.ResponseWriter, _ *http.Request, _ []string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"no: %s","code":"x"}}`, modelsKey)
	}
}

func never(_ http.ResponseWriter, r *http.Request, _ []string) { <-r.Context().Done() }

// opened are the models of settings, running until the test ends.
func opened(t *testing.T, s config.Models) *llm.ToolModels {
	t.Helper()
	m, err := llm.OpenModels(llm.ModelOptions{Settings: s, Resolver: &secrets.Resolver{},
		Known: &secrets.KnownSecrets{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func settings(url string) config.Models {
	return config.Models{Embedding: config.EmbeddingModel{
		BaseURL: url, Model: "m", Key: config.SecretRef{Parts: []config.ValuePart{{Text: modelsKey}}},
		Deadline: 200 * time.Millisecond,
	}}
}

// until waits for what is sure to come.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("waited in vain for ", what)
		}
	}
}

// finds asks an index, and holds that what words find is found, soon.
func finds(t *testing.T, x *index.Index) {
	t.Helper()
	for question, want := range map[string]string{"send a mail": "mail__send",
		"read the contents of a file": "fs__read_file"} {
		began := time.Now()
		hits := x.Find(t.Context(), index.Query{Text: question, Limit: 3})
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%q took %v", question, took)
		}
		if len(hits) == 0 || hits[0].ID != want {
			t.Errorf("%q: %v, want %s first", question, hits, want)
		}
	}
}

// TestEmbedderDown, and slow, of a wrong dimension, changed, and whatever else a provider may do: words find the
// tools, within the deadline, no one who asks is told of an error, and the status describes what is wrong without a
// secret.
func TestEmbedderDown(t *testing.T) {
	flip := new(atomic.Int64)
	for name, tt := range map[string]struct {
		does func(http.ResponseWriter, *http.Request, []string)
		want string
	}{
		"slow":     {never, "the provider does not answer in time"},
		"busy":     {modelsFails(429), "too many requests"},
		"broken":   {modelsFails(500), "(500"},
		"no entry": {modelsFails(401), "the key is refused (401, x)"},
		"no model": {modelsFails(404), "the model or the address does not exist"},
		"nonsense": {func(w http.ResponseWriter, _ *http.Request, _ []string) { fmt.Fprint(w, "hello "+modelsKey) },
			"the answer is not understood"},
		"too few": {func(w http.ResponseWriter, r *http.Request, texts []string) { embeds(26)(w, r, texts[1:]) },
			"the answer has not a vector for each text"},
		"wrong dimension": {func(w http.ResponseWriter, r *http.Request, texts []string) {
			embeds(20+int(flip.Add(1))%5)(w, r, texts)
		}, "dimension"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := modelsServe(t)
			p.does(tt.does)
			s := settings(p.URL)
			s.Embedding.Timeout = 100 * time.Millisecond
			m := opened(t, s)
			x := index.New(m.IndexOptions())
			x.Update(documents(), nil)
			finds(t, x)
			until(t, "an error in the status", func() bool {
				return strings.Contains(m.Status().Embedding.Err, tt.want) && !m.Status().Embedding.Away.IsZero()
			})
			finds(t, x)
			if s := m.Status().Embedding; strings.Contains(s.Err, modelsKey) || s.Texts != 4 || s.Vectors == 4 {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("no server there", func(t *testing.T) {
		t.Parallel()
		p := modelsServe(t)
		p.Close()
		m := opened(t, settings(p.URL))
		x := index.New(m.IndexOptions())
		x.Update(documents(), nil)
		finds(t, x)
		until(t, "an error in the status", func() bool {
			return strings.Contains(m.Status().Embedding.Err,
				"cannot be reached")
		})
	})
}

// TestEmbedderGoesAway has a model that answered before be slow, and then another one.
func TestEmbedderGoesAway(t *testing.T) {
	p := modelsServe(t)
	m := opened(t, settings(p.URL))
	x := index.New(m.IndexOptions())
	x.Update(documents(), nil)
	until(t, "vectors", func() bool { return m.Status().Embedding.Vectors == 4 })
	var among []index.TextKey
	for _, d := range documents() {
		among = append(among, d.TextKey())
	}
	text := func(i int) string { d := documents()[i]; return d.EmbeddingText() }
	nearest := func() bool {
		near, err := m.EmbeddingIndex().Nearest(t.Context(), text(2), 1, among)
		return err == nil && near[0].Key == among[2]
	}
	until(t, "an answer", nearest) // the machine may be slow too
	p.does(never)
	until(t, "the model is given up", func() bool {
		_, _ = m.EmbeddingIndex().Nearest(t.Context(), fmt.Sprint(p.asked.Load()), 1, among)
		return !m.Status().Embedding.Away.IsZero()
	})
	finds(t, x)
	p.does(embeds(20))
	until(t, "all is embedded again", func() bool {
		s := m.Status().Embedding
		return s.Dimension == 20 && s.Vectors == 4 && s.Replaced == 1
	})
	until(t, "an answer of the other model", nearest)
	finds(t, x)
}

// TestKeys finds the key where it is kept, and describes what is missing without it.
func TestKeys(t *testing.T) {
	p := modelsServe(t)
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(modelsKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings(p.URL)
	s.Embedding.Key = config.SecretRef{Parts: []config.ValuePart{{Kind: config.FilePart, Text: path}}}
	known := &secrets.KnownSecrets{}
	m, err := llm.OpenModels(llm.ModelOptions{Settings: s, Resolver: &secrets.Resolver{}, Known: known})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(known.All()) != 0 || p.asked.Load() != 0 {
		t.Error("to open it looked for the key, or asked the model")
	}
	m.EmbeddingIndex().Offer(documents())
	if err := m.EmbeddingIndex().EmbedAll(t.Context(), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if got := *p.auth.Load(); got != "Bearer "+modelsKey || !slices.Equal(known.All(), []string{modelsKey}) {
		t.Errorf("%s, known %q", got, known.All())
	}
	for want, k := range map[string]config.SecretRef{
		"embed by m: find the key: it needs OPENAI_API_KEY, which is not set":            {Parts: []config.ValuePart{{Text: "${OPENAI_API_KEY}"}}, Missing: []string{"OPENAI_API_KEY"}},
		"embed by m: find the key: find \"x\" in the keychain: no keychain is available": {Parts: []config.ValuePart{{Kind: config.KeychainPart, Text: "x"}}},
		"embed by m: find the key: what was found has a line break or another control character in it": {Parts: []config.ValuePart{
			{Text: "a\nb"},
		}},
	} {
		s.Embedding.Key = k
		m, err := llm.OpenModels(llm.ModelOptions{Settings: s, Resolver: &secrets.Resolver{}})
		if err != nil {
			t.Fatal(err)
		}
		m.EmbeddingIndex().Offer(documents())
		if err := m.EmbeddingIndex().EmbedAll(t.Context(), func(int, int) {}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		m.Close()
	}
}

func TestOpen(t *testing.T) {
	none, err := llm.OpenModels(llm.ModelOptions{})
	if none != nil || err != nil {
		t.Error(none, err)
	}
	if diff := cmp.Diff(llm.ModelStatus{}, none.Status()); diff != "" || none.EmbeddingIndex() != nil ||
		none.IndexOptions().Remote != nil {
		t.Error(diff)
	}
	none.Close()
	if err := none.Run(t.Context()); err != nil {
		t.Error(err)
	}
	for want, s := range map[string]config.Models{
		"read [mcp.tool_discovery.embedding] in drawbridge.toml: a model is needed":                                                          {Embedding: config.EmbeddingModel{Provider: "openai"}},
		"read [mcp.tool_discovery.embedding] in drawbridge.toml: a key goes over https:// only, but to this machine and its network":         {Embedding: config.EmbeddingModel{Model: "m", BaseURL: "http://models.example", Key: config.SecretRef{Parts: []config.ValuePart{{Text: modelsKey}}}}},
		"read [mcp.tool_discovery.rerank] in drawbridge.toml: an address is needed":                                                          {Rerank: config.RerankModel{Model: "m"}},
		"read [mcp.tool_discovery.rerank] in drawbridge.toml: a model is needed":                                                             {Rerank: config.RerankModel{URL: "https://api.example/v2"}},
		"read [mcp.tool_discovery.rerank] in drawbridge.toml: the address must be without user, query and fragment: a key stands in api_key": {Rerank: config.RerankModel{URL: "https://api.example/rerank?key=1", Model: "m"}},
	} {
		if _, err := llm.OpenModels(llm.ModelOptions{Settings: s, Resolver: &secrets.Resolver{}}); err == nil ||
			err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestRerankerInPlace has a model turn the order of an answer round; when it is away the order is as it was.
func TestRerankerInPlace(t *testing.T) {
	p := modelsServe(t)
	p.does(func(w http.ResponseWriter, _ *http.Request, texts []string) {
		var results []any
		for i := range texts {
			results = append(results, map[string]any{"index": i, "relevance_score": i})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	})
	m := opened(t, config.Models{Rerank: config.RerankModel{URL: p.URL, Model: "r", Timeout: 10 * time.Second}})
	x, plain := index.New(m.IndexOptions()), index.New(index.Options{})
	x.Update(documents(), nil)
	plain.Update(documents(), nil)
	ids := func(x *index.Index) (all []string) {
		for _, h := range x.Find(t.Context(), index.Query{Text: "list a directory or read a file", Limit: 3}) {
			all = append(all, h.ID)
		}
		return all
	}
	want := ids(plain)
	got := ids(x)
	slices.Reverse(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	p.does(modelsFails(503))
	if diff := cmp.Diff(want, ids(x)); diff != "" {
		t.Error(diff)
	}
	if s := m.Status().Rerank; s.Missed != 1 || s.Err == "" {
		t.Errorf("%+v", s)
	}
}
