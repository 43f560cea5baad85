package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// ChatOptions are the options of OpenChatModels.
type ChatOptions struct {
	// Agent and Providers are the settings.
	Agent     config.AgentSettings
	Providers []config.ModelProvider
	// LookupEnv looks up the keys and addresses of built-in providers; nil means os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// Resolver resolves references in keys, and its Keychain has the stored secrets; nil means neither. Environ is the
	// environment of the commands in references. Keys that were found are added to Known.
	Resolver *secrets.Resolver
	Environ  []string
	Known    *secrets.KnownSecrets
	// Transport sends the requests; nil means a default transport for each provider.
	Transport http.RoundTripper
}

// secretFinder returns a function that resolves a secret, or nil if there is none.
func (o ChatOptions) secretFinder(ref config.SecretRef) func(context.Context) (drawbridge.Secret, error) {
	find := ModelOptions{Resolver: o.Resolver, Environ: o.Environ, Known: o.Known}.KeyFinder(ref)
	if find == nil {
		return nil
	}
	return func(ctx context.Context) (drawbridge.Secret, error) {
		secret, err := find(ctx)
		if err != nil {
			return drawbridge.Secret{}, keyError{err}
		}
		return secret, nil
	}
}

// ChatModels are the language models of all providers. Its methods may be called from several goroutines.
type ChatModels struct {
	settings  config.AgentSettings
	providers []*chatProvider
}

// OpenChatModels returns the language models of the providers in the settings, and of the built-in providers. It sends
// no request and looks up no key. The error is a *drawbridge.Fault with the code InvalidInput for settings that cannot
// work.
func OpenChatModels(o ChatOptions) (*ChatModels, error) {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Resolver == nil {
		o.Resolver = &secrets.Resolver{}
	}
	if o.Known == nil {
		o.Known = &secrets.KnownSecrets{}
	}
	m := &ChatModels{settings: o.Agent}
	built := builtInProviders()
	for _, s := range o.Providers {
		var b builtInProvider
		if i := slices.IndexFunc(built, func(b builtInProvider) bool { return b.name == s.Name }); i >= 0 {
			b = built[i]
			built = slices.Delete(built, i, i+1)
		}
		p := newChatProvider(o, b, s)
		if p.err != nil && (s.BaseURL != "" || b.name == "") {
			return nil, invalidSettings("models.providers."+s.Name, p.err)
		}
		m.providers = append(m.providers, p)
	}
	for _, b := range built {
		m.providers = append(m.providers, newChatProvider(o, b, config.ModelProvider{Name: b.name}))
	}
	return m, nil
}

// Close closes idle connections.
func (m *ChatModels) Close() error {
	for _, p := range m.providers {
		_ = p.client.close()
	}
	return nil
}

// ProviderNames returns the names of all providers, in the order in which they are tried.
func (m *ChatModels) ProviderNames() (names []string) {
	for _, p := range m.providers {
		names = append(names, p.name)
	}
	return names
}

// Thinking returns how much the model of the settings thinks.
func (m *ChatModels) Thinking() drawbridge.ThinkingLevel { return m.settings.Thinking }

// Open returns the model of the settings, with its fallback model if one is set. Without a model in the settings it is
// the default model of the first provider that has a key. The error is a *drawbridge.ModelError, or the cause of ctx's
// end.
func (m *ChatModels) Open(ctx context.Context) (Generator, error) {
	main, err := m.Find(ctx, m.settings.Model)
	if m.settings.FallbackModel == "" {
		return generatorOrNil(main, err)
	}
	fallback, fallbackErr := m.Find(ctx, m.settings.FallbackModel)
	failed, _ := errors.AsType[*drawbridge.ModelError](err)
	switch {
	case err != nil && (failed == nil || !failed.MayFallBack() || fallbackErr != nil):
		return nil, err
	case err != nil:
		return fallback, nil
	case fallbackErr != nil:
		return nil, fallbackErr
	}
	return m.WithFallback(main, fallback), nil
}

func generatorOrNil(m *ChatModel, err error) (Generator, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Find returns a model: "provider/name", the name of a provider for its default model, or a name that exactly one
// provider lists. The empty name means the default model of the first provider that has a key. The error is a
// *drawbridge.ModelError, or the cause of ctx's end.
func (m *ChatModels) Find(ctx context.Context, name string) (*ChatModel, error) {
	if name == "" {
		return m.findDefault(ctx)
	}
	before, rest, _ := strings.Cut(name, "/")
	if p := m.provider(before); p != nil {
		return m.open(ctx, p, rest)
	}
	return m.findBare(ctx, name)
}

func (m *ChatModels) provider(name string) *chatProvider {
	for _, p := range m.providers {
		if p.name == name {
			return p
		}
	}
	return nil
}

// open returns a model of a provider; an empty name means the default model. The list of models is only asked for
// facts: a model that is not in it may exist.
func (m *ChatModels) open(ctx context.Context, p *chatProvider, name string) (*ChatModel, error) {
	wanted := p.name + "/" + cmp.Or(name, "default")
	switch {
	case p.err != nil:
		return nil, &drawbridge.ModelError{Code: drawbridge.ModelUnreachable, Model: wanted, Err: p.err}
	case p.keyState() == KeyMissing:
		return nil, &drawbridge.ModelError{Code: drawbridge.ModelKeyMissing, Model: wanted, Next: p.keyHint()}
	}
	within, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	listed, err := p.list(within)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if name == "" {
		name = p.defaultModel(listed)
	}
	if name == "" {
		if err != nil {
			return nil, p.model("default", nil).modelError(err, drawbridge.ModelRequest{})
		}
		return nil, &drawbridge.ModelError{Code: drawbridge.ModelUnknown, Model: wanted,
			Err: errors.New("the provider lists no model"), Next: "name one: model in [agent]"}
	}
	return p.model(name, listed), nil
}

// findDefault returns the default model of the first provider that has a key. A provider that needs none counts if it
// answers.
func (m *ChatModels) findDefault(ctx context.Context) (*ChatModel, error) {
	var optional []*chatProvider
	var hints []string
	for _, p := range m.providers {
		switch state := p.keyState(); {
		case p.err != nil:
		case state == KeyMissing:
			hints = append(hints, p.keyNames[0])
		case state == KeyNotNeeded && p.settings.BaseURL == "":
			optional = append(optional, p)
		default:
			return m.open(ctx, p, "")
		}
	}
	for _, p := range optional {
		listed, err := p.list(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if name := p.defaultModel(listed); err == nil && name != "" {
			return p.model(name, listed), nil
		}
	}
	e := &drawbridge.ModelError{Code: drawbridge.ModelKeyMissing, Model: "default",
		Err: errors.New("no provider of models has a key")}
	if len(hints) > 0 {
		e.Next = fmt.Sprintf("set one of %s, or run: drawbridge secret set %s", strings.Join(hints, ", "), hints[0])
	}
	return nil, e
}

// findBare returns the model of the only provider that lists a name.
func (m *ChatModels) findBare(ctx context.Context, name string) (*ChatModel, error) {
	all := m.List(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var found []string
	for _, s := range all {
		if slices.ContainsFunc(s.Models, func(i drawbridge.ModelInfo) bool { return i.Name == name }) {
			found = append(found, s.Provider)
		}
	}
	if len(found) == 1 {
		p := m.provider(found[0])
		listed, _ := p.list(ctx)
		return p.model(name, listed), nil
	}
	e := &drawbridge.ModelError{Code: drawbridge.ModelUnknown, Model: name}
	if len(found) > 1 {
		e.Err = errors.New("several providers list it")
		e.Next = "name one: " + strings.Join(found, "/"+name+", ") + "/" + name
		return nil, e
	}
	e.Err = errors.New("no provider that can be reached lists it")
	e.Next = "drawbridge models --all lists the models; the name may begin with the provider, such as anthropic/"
	return nil, e
}

// Status returns the status of the provider with that name, as List does, and reports whether there is one.
func (m *ChatModels) Status(ctx context.Context, name string) (ProviderStatus, bool) {
	p := m.provider(name)
	if p == nil {
		return ProviderStatus{}, false
	}
	return p.status(ctx), true
}

// A ProviderStatus describes a provider and its models.
type ProviderStatus struct {
	Provider, Kind string
	// Address is the address of the provider, without its path.
	Address string
	// Key says where the key is, and KeyName which environment variable or secret it is.
	Key     KeyState
	KeyName string
	// Default is the default model. Models are the models that the provider lists, or those of the settings.
	Default string
	Models  []drawbridge.ModelInfo
	// Err says why the provider cannot be used: a *drawbridge.ModelError, or nil.
	Err error
}

// List returns the providers in the order in which they are tried. It asks each provider that may have a key for its
// models, all at the same time.
func (m *ChatModels) List(ctx context.Context) []ProviderStatus {
	all := make([]ProviderStatus, len(m.providers))
	var group errgroup.Group
	for i, p := range m.providers {
		group.Go(func() error {
			all[i] = p.status(ctx)
			return nil
		})
	}
	_ = group.Wait()
	return all
}

// status returns the status of a provider.
func (p *chatProvider) status(ctx context.Context) ProviderStatus {
	s := ProviderStatus{Provider: p.name, Kind: p.kind, Address: originOf(p.base), Key: p.keyState()}
	switch s.Key {
	case KeyInVariable:
		s.KeyName, _ = p.keyVariable()
	case KeyIsStored, KeyMissing:
		s.KeyName = p.keyNames[0]
	}
	if p.err != nil {
		s.Err = &drawbridge.ModelError{Code: drawbridge.ModelUnreachable, Model: p.name, Err: p.err}
		return s
	}
	if s.Key == KeyMissing {
		s.Err = &drawbridge.ModelError{Code: drawbridge.ModelKeyMissing, Model: p.name, Next: p.keyHint()}
		return s
	}
	listed, err := p.list(ctx)
	if err != nil {
		e := p.model("", nil).modelError(err, drawbridge.ModelRequest{})
		if e.Code == drawbridge.ModelUnknown { // the list itself is missing
			e.Code, e.Next = drawbridge.ModelUnreachable, ""
		}
		e.Model = p.name
		s.Err = e
	}
	names := []string{}
	for _, l := range listed {
		names = append(names, l.Name)
	}
	for _, f := range p.settings.Models {
		names = append(names, f.Name)
	}
	if s.Default = p.defaultModel(listed); s.Default != "" && p.settings.DefaultModel != "" {
		names = append(names, s.Default)
	}
	for _, name := range names {
		if !slices.ContainsFunc(s.Models, func(i drawbridge.ModelInfo) bool { return i.Name == name }) {
			s.Models = append(s.Models, p.model(name, listed).info)
		}
	}
	return s
}

// originOf returns the scheme and the host of an address. The path may have something secret in it.
func originOf(base string) string {
	scheme, rest, _ := strings.Cut(base, "://")
	host, _, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(host, "@?#") {
		return ""
	}
	return scheme + "://" + host
}

// WithFallback returns a model that asks main, and fallback if main fails with an error that allows it.
func (m *ChatModels) WithFallback(main, fallback Generator) *FallbackModel {
	return NewFallbackModel(main, fallback)
}
