package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/google/go-cmp/cmp"
)

// A storedSecrets is a keychain with some secrets.
type storedSecrets map[string]string

func (s storedSecrets) Get(name string) ([]byte, error) {
	if value, ok := s[name]; ok {
		return []byte(value), nil
	}
	return nil, secrets.ErrNotFound
}

// A hosts answers by the host of the address, so that a test needs no network.
type hosts map[string]func(r *http.Request) (status int, body string)

func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, ok := h[r.URL.Host]
	if !ok {
		return nil, fmt.Errorf("%s: %w", r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"), errors.New("no such host"))
	}
	w := httptest.NewRecorder()
	status, body := answer(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.WriteString(body)
	return w.Result(), nil
}

// lists answers each request for models with a recorded list.
func lists(t *testing.T, kind string) func(*http.Request) (int, string) {
	body := chatFiles(t, kind)["models.json"]
	return func(*http.Request) (int, string) { return 200, body }
}

// openChat opens the models with an environment.
func openChat(t *testing.T, env map[string]string, o llm.ChatOptions) *llm.ChatModels {
	t.Helper()
	o.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	m, err := llm.OpenChatModels(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFindModels shows which model a name means.
func TestFindModels(t *testing.T) {
	network := hosts{
		"api.anthropic.com": lists(t, llm.KindAnthropic), "api.openai.com": lists(t, llm.KindOpenAI),
		"generativelanguage.googleapis.com": lists(t, llm.KindGemini), "openrouter.ai": lists(t, llm.KindOpenAIChat),
		"127.0.0.1:11434": lists(t, llm.KindOpenAIChat), "box.internal:8000": lists(t, llm.KindOpenAIChat),
	}
	all := map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GOOGLE_API_KEY": "g", "OPENROUTER_API_KEY": "r"}
	local := config.ModelProvider{Name: "box", BaseURL: "http://box.internal:8000/v1"}
	for _, tt := range []struct {
		name      string
		env       map[string]string
		settings  config.AgentSettings
		providers []config.ModelProvider
		find      string
		want      string // the model, or the error
	}{
		{"the first with a key", map[string]string{"GEMINI_API_KEY": "g"}, config.AgentSettings{}, nil, "", "gemini/gemini-3.8-flash"},
		{"the order", all, config.AgentSettings{}, nil, "", "anthropic/claude-sonnet-5"},
		{"without a key", nil, config.AgentSettings{}, nil, "", "ollama/anthropic/claude-sonnet-5"},
		{"of the settings", all, config.AgentSettings{}, []config.ModelProvider{local}, "", "box/anthropic/claude-sonnet-5"},
		{"the own default", all, config.AgentSettings{}, []config.ModelProvider{{Name: "anthropic", DefaultModel: "claude-x"}}, "",
			"anthropic/claude-x"},
		{"a provider", all, config.AgentSettings{}, nil, "openai", "openai/gpt-6-sol"},
		{"a name with a slash", all, config.AgentSettings{}, nil, "openrouter/anthropic/claude-sonnet-5",
			"openrouter/anthropic/claude-sonnet-5"},
		{"a name that is not listed", all, config.AgentSettings{}, nil, "openai/gpt-7", "openai/gpt-7"},
		{"a bare name", map[string]string{"OPENAI_API_KEY": "o"}, config.AgentSettings{}, nil, "gpt-6-sol", "openai/gpt-6-sol"},
		{"a bare name at two", all, config.AgentSettings{}, nil, "qwen3:32b", "ask the model qwen3:32b: model unknown: " +
			"several providers list it (name one: openrouter/qwen3:32b, ollama/qwen3:32b)"},
		{"a bare name at none", all, config.AgentSettings{}, nil, "nope/x", "ask the model nope/x: model unknown: no provider " +
			"that can be reached lists it (drawbridge models --all lists the models; the name may begin with the provider, " +
			"such as anthropic/)"},
		{"no key", nil, config.AgentSettings{}, nil, "anthropic/claude-sonnet-5", "ask the model anthropic/claude-sonnet-5: " +
			"key missing (set ANTHROPIC_API_KEY, or run: drawbridge secret set ANTHROPIC_API_KEY)"},
	} {
		m := openChat(t, tt.env, llm.ChatOptions{Agent: tt.settings, Providers: tt.providers, Transport: network})
		got, err := m.Find(t.Context(), tt.find)
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = got.Info().String()
		}
		if text != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
	}
}

// TestFacts shows where facts about a model come from: the settings, the provider, the name.
func TestFacts(t *testing.T) {
	network := hosts{"api.anthropic.com": lists(t, llm.KindAnthropic), "openrouter.ai": lists(t, llm.KindOpenAIChat),
		"api.openai.com": func(*http.Request) (int, string) { return 500, "" }}
	env := map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "OPENROUTER_API_KEY": "r"}
	m := openChat(t, env, llm.ChatOptions{Transport: network, Providers: []config.ModelProvider{{Name: "openai",
		Models: []config.ModelFacts{{Name: "gpt-5", MaxOutput: 1000, Price: drawbridge.ModelPrice{Input: 2}}}}}})
	got := map[string]drawbridge.ModelInfo{}
	for _, name := range []string{"anthropic/claude-sonnet-5", "openai/gpt-5", "openrouter/anthropic/claude-sonnet-5"} {
		one, err := m.Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = one.Info()
	}
	want := map[string]drawbridge.ModelInfo{
		"anthropic/claude-sonnet-5": {Provider: "anthropic", Name: "claude-sonnet-5", Window: 1e6, MaxOutput: 128000, Images: true,
			DeferredTools: true},
		"openai/gpt-5": {Provider: "openai", Name: "gpt-5", Window: 400000, MaxOutput: 1000, Images: true,
			Price: drawbridge.ModelPrice{Input: 2}},
		"openrouter/anthropic/claude-sonnet-5": {Provider: "openrouter", Name: "anthropic/claude-sonnet-5", Window: 1e6,
			MaxOutput: 64000, Images: true, Price: drawbridge.ModelPrice{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Error(diff)
	}
}

// TestListOfProviders shows the state of each provider, with no key in it.
func TestListOfProviders(t *testing.T) {
	network := hosts{
		"api.anthropic.com": func(r *http.Request) (int, string) {
			return 401, `{"error":{"message":"bad key ` + r.Header.Get("X-Api-Key") + `"}}`
		},
		"generativelanguage.googleapis.com": lists(t, llm.KindGemini),
	}
	o := llm.ChatOptions{Transport: network, Resolver: &secrets.Resolver{Keychain: storedSecrets{"GEMINI_API_KEY": chatKey}},
		Providers: []config.ModelProvider{{Name: "lost", BaseURL: "https://lost.example",
			Key: config.SecretRef{Parts: []config.ValuePart{{Kind: config.KeychainPart, Text: "none"}}}}}}
	m := openChat(t, map[string]string{"ANTHROPIC_API_KEY": chatKey, "OPENAI_BASE_URL": "ftp://x"}, o)
	var got []string
	for _, s := range m.List(t.Context()) {
		line := fmt.Sprintf("%s: %s %s, %d models", s.Provider, s.Key, s.KeyName, len(s.Models))
		if s.Err != nil {
			line += ", " + s.Err.Error()
		}
		got = append(got, line)
	}
	want := []string{
		"lost: settings , 0 models, ask the model lost: key missing: find \"none\" in the keychain: secret not found (see api_key in [models.providers.lost])",
		"anthropic: environment ANTHROPIC_API_KEY, 0 models, ask the model anthropic: key rejected: the key is refused (401) " +
			"(set ANTHROPIC_API_KEY, or run: drawbridge secret set ANTHROPIC_API_KEY)",
		"openai: not needed , 0 models, ask the model openai: unreachable: the address must be an https:// URL with a host",
		"gemini: stored secret GEMINI_API_KEY, 1 models",
		"openrouter: missing OPENROUTER_API_KEY, 0 models, ask the model openrouter: key missing (set OPENROUTER_API_KEY, or run: " +
			"drawbridge secret set OPENROUTER_API_KEY)",
		"ollama: not needed , 0 models, ask the model ollama: unreachable: the provider cannot be reached " +
			"(is Ollama running? start it with: ollama serve)",
	}
	if diff := cmp.Diff(want, got); diff != "" || strings.Contains(strings.Join(got, ""), "very-secret") {
		t.Error(diff)
	}
}

// TestAddresses shows where the key may go: never unencrypted beyond the local network, and only to the own address.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		name string
		sent string // the address and the key; empty if nothing is sent
	}{
		{map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://proxy.example"}, "anthropic/m", "https://proxy.example/v1/models k"},
		{map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://proxy.example"}, "anthropic/m", ""},
		{map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1/x/"}, "anthropic/m", "http://127.0.0.1:1/x/models k"},
		{map[string]string{"OLLAMA_HOST": "0.0.0.0"}, "ollama/m", "http://127.0.0.1:11434/v1/models "},
		{map[string]string{"OLLAMA_HOST": "box:9", "OLLAMA_API_KEY": "k"}, "ollama/m", "http://box:9/v1/models "},
		{map[string]string{"OPENAI_API_KEY": "k\r\nX-Evil: 1"}, "openai/m", ""},
	} {
		sent := ""
		network := roundTrip(func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/models") {
				key := r.Header.Get("X-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				sent = r.URL.Scheme + "://" + r.URL.Host + r.URL.Path + " " + key
			}
		})
		m := openChat(t, tt.env, llm.ChatOptions{Transport: network})
		_, err := m.Find(t.Context(), tt.name)
		if sent != tt.sent {
			t.Errorf("%v: sent %q (%v), want %q", tt.env, sent, err, tt.sent)
		}
	}
	for _, p := range []config.ModelProvider{
		{Name: "x"}, {Name: "x", BaseURL: "https://u:p@h"}, {Name: "anthropic", BaseURL: "http://h.example", Key: config.SecretRef{
			Parts: []config.ValuePart{{Text: "k"}}}},
		{Name: "x", BaseURL: "http://h.example", Headers: []config.SecretHeader{{Name: "K", Value: config.SecretRef{
			Parts: []config.ValuePart{{Text: "k"}}}}}},
	} {
		_, err := llm.OpenChatModels(llm.ChatOptions{Providers: []config.ModelProvider{p}})
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

type roundTrip func(*http.Request)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, errors.New("no network")
}

// TestFallback shows who answers if the main model fails, and that its pieces are void.
func TestFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := chatFiles(t, llm.KindAnthropic)
		main := serveChat(t, llm.KindAnthropic, streams(files["error"]))
		other := serveChat(t, llm.KindOpenAI, streams(chatFiles(t, llm.KindOpenAI)["text"]))
		f := main.models.WithFallback(main.model(), other.model())
		var d told
		var attempts []int
		r, err := f.Generate(t.Context(), ask(), func(x drawbridge.ModelDelta) {
			d.add(x)
			if x.Retry != nil {
				attempts = append(attempts, x.Retry.Attempt)
			}
		})
		if err != nil || r.Model != "p/gpt-5" || d.text != "Hello, wörld." || r.Message.Text() != d.text {
			t.Errorf("%+v %v %+v", r, err, d)
		}
		if diff := cmp.Diff([]int{2, 3, 4, 5}, attempts); diff != "" {
			t.Error(diff)
		}
		// for a minute the fallback model is asked first
		sent := len(main.requests())
		if _, err := f.Generate(t.Context(), ask(), nil); err != nil || len(main.requests()) != sent || len(other.requests()) != 2 {
			t.Error(err, len(main.requests()), len(other.requests()))
		}
		<-time.After(61 * time.Second)
		if _, err := f.Generate(t.Context(), ask(), nil); err != nil || len(main.requests()) != sent+4 {
			t.Error(err, len(main.requests()))
		}
		if f.Info().Window != 400000 || f.Info().Name != "claude-sonnet-5" {
			t.Error(f.Info())
		}
	})
}

// TestNoFallback shows the errors after which no other model is asked.
func TestNoFallback(t *testing.T) {
	for _, name := range []string{"too_long.json", "rejected.json"} {
		synctest.Test(t, func(t *testing.T) {
			files := chatFiles(t, llm.KindAnthropic)
			main := serveChat(t, llm.KindAnthropic, refuses(400, files[name]))
			other := serveChat(t, llm.KindOpenAI, streams(chatFiles(t, llm.KindOpenAI)["text"]))
			_, err := main.models.WithFallback(main.model(), other.model()).Generate(t.Context(), ask(), nil)
			if codeOf(t, err) == "" || len(other.requests()) != 0 {
				t.Error(err, len(other.requests()))
			}
		})
	}
}

// TestErrorsHaveNoTexts shows that a provider's message is cut where it repeats the key or the conversation.
func TestErrorsHaveNoTexts(t *testing.T) {
	for _, kind := range chatKinds {
		synctest.Test(t, func(t *testing.T) {
			message, _ := json.Marshal("messages.1: \x1b[31m'my secret diary entry' is wrong, " + chatKey + "\n" + strings.Repeat("x", 500))
			s := serveChat(t, kind, refuses(400, `{"error":{"message":`+string(message)+`}}`))
			r := ask()
			r.Messages = append(r.Messages, drawbridge.NewUserMessage("Here is my secret diary entry of today."))
			_, err := s.model().Generate(t.Context(), r, nil)
			text := fmt.Sprint(err)
			if !strings.Contains(text, "messages.1: ") || strings.Contains(text, "diary") || strings.Contains(text, "very-secret") ||
				strings.ContainsAny(text, "\n\x1b") || len(text) > 450 {
				t.Errorf("%s: %q", kind, text)
			}
		})
	}
}

// An agentModel is the interface of package agent, which may not be imported here.
type agentModel interface {
	Generate(ctx context.Context, r drawbridge.ModelRequest, onDelta func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error)
	Info() drawbridge.ModelInfo
}

var _, _ agentModel = (*llm.ChatModel)(nil), (*llm.FallbackModel)(nil)
