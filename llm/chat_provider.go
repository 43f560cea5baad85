package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// The kinds of providers of language models, by their API.
const (
	// KindAnthropic is Anthropic's Messages API. KindOpenAI is OpenAI's Responses API, and KindOpenAIChat its Chat
	// Completions API. KindGemini is Google's Gemini API.
	KindAnthropic  = "anthropic"
	KindOpenAI     = "openai"
	KindOpenAIChat = "openai-chat"
	KindGemini     = "gemini"
)

// chatAPIOf returns the API of a kind of providers.
func chatAPIOf(kind string) (chatAPI, bool) {
	switch kind {
	case KindAnthropic:
		return anthropicAPI, true
	case KindOpenAI:
		return responsesAPI, true
	case KindOpenAIChat:
		return completionsAPI, true
	case KindGemini:
		return geminiAPI, true
	}
	return chatAPI{}, false
}

// A builtInProvider is a provider that works without settings.
type builtInProvider struct {
	name, kind, base string
	// keyNames are the environment variables of the key; the first is also the name of the stored secret. baseName is
	// the environment variable of the address.
	keyNames []string
	baseName string
	// preferred are the default models, the best first. A name may end in "*": it stands for the newest model that begins
	// so.
	preferred []string
	// noKey is set for a provider that needs no key. startHint tells what to do if it cannot be reached.
	noKey     bool
	startHint string
}

// builtInProviders returns the providers that work without settings, in the order in which they are tried.
func builtInProviders() []builtInProvider {
	return []builtInProvider{
		{name: "anthropic", kind: KindAnthropic, base: anthropicAPI.base, keyNames: []string{"ANTHROPIC_API_KEY"},
			baseName: "ANTHROPIC_BASE_URL", preferred: []string{"claude-sonnet-5-5", "claude-sonnet-5", "claude-sonnet-*"}},
		{name: "openai", kind: KindOpenAI, base: responsesAPI.base, keyNames: []string{"OPENAI_API_KEY"},
			baseName: "OPENAI_BASE_URL", preferred: []string{"gpt-6.1-sol", "gpt-6-sol", "gpt-5.6-sol", "gpt-5.5", "gpt-*"}},
		{name: "gemini", kind: KindGemini, base: geminiAPI.base, keyNames: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
			preferred: []string{"gemini-3.8-flash", "gemini-3.1-pro-preview", "gemini-2.5-pro", "gemini-*"}},
		{name: "openrouter", kind: KindOpenAIChat, base: "https://openrouter.ai/api/v1",
			keyNames: []string{"OPENROUTER_API_KEY"}, preferred: []string{"anthropic/claude-sonnet-*"}},
		{name: "ollama", kind: KindOpenAIChat, base: "http://127.0.0.1:11434/v1", baseName: "OLLAMA_HOST", noKey: true,
			startHint: "is Ollama running? start it with: ollama serve"},
	}
}

// A chatProvider is a provider of language models.
type chatProvider struct {
	name, kind, base string
	api              chatAPI
	builtIn          builtInProvider
	settings         config.ModelProvider
	client           *apiClient
	firstTimeout     time.Duration
	nextTimeout      time.Duration
	keyNames         []string
	// needsKey is set if the provider refuses requests without a key. err is the reason why it cannot be used.
	needsKey bool
	err      error
	lookup   func(string) (string, bool)
	keychain secrets.SecretGetter
	known    *secrets.KnownSecrets
	findKey  func(context.Context) (drawbridge.Secret, error) // of the setting api_key; nil without it

	mu     sync.Mutex
	listed []listedModel // nil until the list was read
}

// A listedModel is a model in a provider's list.
type listedModel struct {
	config.ModelFacts
	created  int64 // in seconds since 1970; 0 if it is not known
	thinking thinkingSupport
}

// errKeyNotFound is the error of a provider without the key that it needs.
var errKeyNotFound = errors.New("no key is configured")

// A keyError is the reason why a configured key could not be found.
type keyError struct{ error }

// Is reports whether target is errKeyNotFound.
func (e keyError) Is(target error) bool { return target == errKeyNotFound }

// Unwrap returns the reason.
func (e keyError) Unwrap() error { return e.error }

// newChatProvider returns a provider. Its field err is set if it cannot be used.
func newChatProvider(o ChatOptions, built builtInProvider, s config.ModelProvider) *chatProvider {
	p := &chatProvider{name: cmp.Or(s.Name, built.name), builtIn: built, settings: s, lookup: o.LookupEnv, known: o.Known,
		keyNames: built.keyNames, firstTimeout: cmp.Or(s.Timeout, firstPartTimeout),
		nextTimeout: cmp.Or(s.Timeout, nextPartTimeout)}
	if o.Resolver != nil {
		p.keychain = o.Resolver.Keychain
	}
	p.kind = cmp.Or(s.Kind, built.kind, KindOpenAIChat)
	p.api, _ = chatAPIOf(p.kind)
	p.base = p.baseURL()
	if built.name == "" {
		p.keyNames = []string{strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(p.name)) + "_API_KEY"}
	}
	p.needsKey = built.name != "" && !built.noKey && p.base == built.base
	p.findKey = o.secretFinder(s.Key)
	e := Endpoint{Timeout: listTimeout, Transport: o.Transport}
	if p.findKey != nil || p.mayHaveKey() {
		e.FindKey = p.key
	}
	for _, h := range s.Headers {
		e.Headers = append(e.Headers, HeaderFinder{h.Name, o.secretFinder(h.Value)})
	}
	switch {
	case built.name == "" && s.BaseURL == "":
		p.err = fmt.Errorf("set base_url in [models.providers.%s]", p.name)
	default:
		p.client, p.err = newAPIClient(e, p.base)
	}
	if p.client == nil {
		p.client = &apiClient{} // holds no key
	}
	return p
}

// baseURL returns the address: that of the settings, of the environment, or of the provider.
func (p *chatProvider) baseURL() string {
	base := p.settings.BaseURL
	if base == "" && p.builtIn.baseName != "" {
		base, _ = p.lookup(p.builtIn.baseName)
		if p.builtIn.baseName == "OLLAMA_HOST" {
			base = ollamaURL(base)
		}
	}
	base = strings.TrimRight(cmp.Or(strings.TrimSpace(base), p.builtIn.base), "/")
	if u, err := url.Parse(base); err == nil && u.Path == "" && u.RawQuery == "" && base != "" {
		return base + p.api.version
	}
	return base
}

// ollamaURL returns the URL for a value of OLLAMA_HOST, which may be a host, a port or both. An address on which Ollama
// listens on all networks means this machine.
func ollamaURL(host string) string {
	if host = strings.TrimSpace(host); host == "" {
		return ""
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return host
	}
	name, port := u.Hostname(), u.Port()
	if name == "" || name == "0.0.0.0" || name == "::" {
		name = "127.0.0.1"
	}
	if port == "" && u.Scheme == "http" {
		port = "11434"
	}
	u.Host = name
	if port != "" {
		u.Host = net.JoinHostPort(name, port)
	}
	return u.String()
}

// mayHaveKey reports whether a key may be found although api_key is not set. A key that is only stored is not looked
// for where it could not be sent: unencrypted beyond the local network.
func (p *chatProvider) mayHaveKey() bool {
	if p.builtIn.noKey {
		return false
	}
	if _, ok := p.keyVariable(); ok {
		return true
	}
	u, err := url.Parse(p.base)
	return err == nil && (u.Scheme == "https" || isLocalHost(u.Hostname()))
}

// keyVariable returns the environment variable that has the key.
func (p *chatProvider) keyVariable() (name string, ok bool) {
	for _, name := range p.keyNames {
		if value, _ := p.lookup(name); strings.TrimSpace(value) != "" {
			return name, true
		}
	}
	return "", false
}

// key returns the key: that of the settings, of the environment, or the stored secret. It returns an empty Secret if
// there is none and none is needed.
func (p *chatProvider) key(ctx context.Context) (drawbridge.Secret, error) {
	if p.findKey != nil {
		return p.findKey(ctx)
	}
	text := ""
	if name, ok := p.keyVariable(); ok {
		text, _ = p.lookup(name)
	} else if p.keychain != nil && len(p.keyNames) > 0 {
		value, err := p.keychain.Get(p.keyNames[0])
		if err != nil && !errors.Is(err, secrets.ErrNotFound) && p.needsKey {
			return drawbridge.Secret{}, keyError{err}
		}
		text = string(value)
	}
	switch text = strings.TrimSpace(text); {
	case text == "" && p.needsKey:
		return drawbridge.Secret{}, errKeyNotFound
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return drawbridge.Secret{}, keyError{errors.New("it has a line break or another control character in it")}
	}
	if p.known != nil && text != "" {
		p.known.Note(text)
	}
	return drawbridge.NewSecret(text), nil
}

// A KeyState says where the key of a provider is.
type KeyState string

// The key states.
const (
	KeyMissing     KeyState = "missing"
	KeyNotNeeded   KeyState = "not needed"
	KeyInSettings  KeyState = "settings"
	KeyInVariable  KeyState = "environment"
	KeyIsStored    KeyState = "stored secret"
	KeyUnavailable KeyState = "keychain unavailable"
)

// keyState returns where the key is. It runs no command.
func (p *chatProvider) keyState() KeyState {
	if p.findKey != nil {
		return KeyInSettings
	}
	if _, ok := p.keyVariable(); ok && !p.builtIn.noKey {
		return KeyInVariable
	}
	if p.keychain != nil && len(p.keyNames) > 0 && !p.builtIn.noKey {
		_, err := p.keychain.Get(p.keyNames[0])
		switch {
		case err == nil:
			return KeyIsStored
		case !errors.Is(err, secrets.ErrNotFound) && p.needsKey:
			return KeyUnavailable
		}
	}
	if p.needsKey {
		return KeyMissing
	}
	return KeyNotNeeded
}

// keyHint tells what to do about a key that is missing or refused.
func (p *chatProvider) keyHint() string {
	if p.findKey != nil || len(p.keyNames) == 0 {
		return fmt.Sprintf("see api_key in [models.providers.%s]", p.name)
	}
	return fmt.Sprintf("set %s, or run: drawbridge secret set %s", p.keyNames[0], p.keyNames[0])
}

const (
	// listTimeout limits a request for the list of models, and maxList its size. factsTimeout limits the wait for the list
	// before a model is used.
	listTimeout  = 10 * time.Second
	factsTimeout = 4 * time.Second
	maxList      = 32 << 20
)

// list returns the models of the provider, the newest first where their age is known. The list is read once.
func (p *chatProvider) list(ctx context.Context) ([]listedModel, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listed != nil {
		return p.listed, nil
	}
	if p.err != nil {
		return nil, p.err
	}
	raw, err := p.client.send(ctx, apiRequest{method: http.MethodGet, url: p.base + p.api.listPath, header: p.api.header,
		addKey: p.api.addKey, maxResponse: maxList}, nil)
	if err != nil {
		return nil, err
	}
	all, ok := p.api.parseList(raw)
	if !ok {
		return nil, errors.New("its list of models is not understood")
	}
	slices.SortStableFunc(all, func(a, b listedModel) int { return cmp.Compare(b.created, a.created) })
	p.listed = slices.Clip(append([]listedModel{}, all...))
	return p.listed, nil
}

// model returns a model of the provider. Facts are those of the settings, then those of the list, then well-known ones.
func (p *chatProvider) model(name string, listed []listedModel) *ChatModel {
	m := &ChatModel{provider: p, official: p.kind == KindOpenAIChat && strings.HasPrefix(p.base, "https://api.openai.com/")}
	var told listedModel
	if i := slices.IndexFunc(listed, func(l listedModel) bool { return l.Name == name }); i >= 0 {
		told = listed[i]
	}
	var set config.ModelFacts
	if i := slices.IndexFunc(p.settings.Models, func(f config.ModelFacts) bool { return f.Name == name }); i >= 0 {
		set = p.settings.Models[i]
	}
	known := wellKnownFacts(p.kind, name)
	m.thinking, m.thinks = told.thinking, cmp.Or(set.Thinking, told.Thinking)
	images := cmp.Or(set.Images, told.Images)
	m.info = drawbridge.ModelInfo{
		Provider: p.name, Name: name, Window: cmp.Or(set.Window, told.Window, known.Window),
		MaxOutput: cmp.Or(set.MaxOutput, told.MaxOutput, known.MaxOutput), Images: images == nil || *images,
		Price: cmp.Or(set.Price, told.Price), DeferredTools: p.searchesTools(name),
	}
	return m
}

// wellKnownFacts returns facts about a model whose provider does not tell them, judging by its name. They are the
// smallest of its family.
func wellKnownFacts(kind, name string) config.ModelFacts {
	for _, f := range []struct {
		kind, prefix      string
		window, maxOutput int
	}{
		{KindAnthropic, "claude-3-haiku", 200_000, 4096},
		{KindAnthropic, "claude-3-5", 200_000, 8192},
		{KindAnthropic, "claude-", 200_000, 32_000},
		{KindOpenAI, "gpt-4o", 128_000, 16_384},
		{KindOpenAI, "gpt-4.1", 1_047_576, 32_768},
		{KindOpenAI, "gpt-5", 400_000, 128_000},
		{KindOpenAI, "gpt-6", 400_000, 128_000},
		{KindOpenAI, "o", 200_000, 100_000},
		{KindGemini, "gemini-", 1_048_576, 65_536},
	} {
		if f.kind == kind && strings.HasPrefix(name, f.prefix) {
			return config.ModelFacts{Window: f.window, MaxOutput: f.maxOutput}
		}
	}
	return config.ModelFacts{}
}

// defaultModel returns the name of the provider's default model: that of the settings, or the best preferred one that
// the provider lists. Without a list it is the best preferred one.
func (p *chatProvider) defaultModel(listed []listedModel) string {
	if p.settings.DefaultModel != "" {
		return p.settings.DefaultModel
	}
	for _, want := range p.builtIn.preferred {
		prefix, newest := strings.CutSuffix(want, "*")
		for _, l := range listed {
			if l.Name == want || newest && strings.HasPrefix(l.Name, prefix) {
				return l.Name
			}
		}
	}
	switch {
	case len(listed) > 0:
		return listed[0].Name
	case len(p.settings.Models) > 0:
		return p.settings.Models[0].Name
	case len(p.builtIn.preferred) > 0 && !strings.HasSuffix(p.builtIn.preferred[0], "*"):
		return p.builtIn.preferred[0]
	}
	return ""
}
