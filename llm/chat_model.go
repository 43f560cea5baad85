package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// maxChatAttempts is the maximum number of attempts for an answer. firstChatPause is the pause after the first
	// attempt, unless the provider asks for another pause; it doubles after each attempt.
	maxChatAttempts = 4
	firstChatPause  = 500 * time.Millisecond
	// maxChatPause is the maximum pause before another attempt. If the provider asks for a longer pause, its error is
	// returned.
	maxChatPause = time.Minute
	// maxRequest is the maximum size of a request.
	maxRequest = 128 << 20
)

// errBadCall is the error of a provider that could not read the call that its model wrote.
var errBadCall = errors.New("the model wrote a call that its provider could not read")

// A Generator is a language model. *ChatModel and *FallbackModel are Generators.
type Generator interface {
	// Generate asks the model for the next message of a conversation; see ChatModel.Generate.
	Generate(ctx context.Context, r drawbridge.ModelRequest, onDelta func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error)
	// Info describes the model.
	Info() drawbridge.ModelInfo
}

// A chatAPI is the API of a kind of providers.
type chatAPI struct {
	// base is the default address. version is the path that is appended to an address without a path.
	base, version string
	// header are headers of each request. addKey adds the key; nil sends it as a bearer token.
	header map[string]string
	addKey func(h http.Header, key string)
	// request returns the path and the body of a request for an answer. reader returns a reader for the answer.
	request func(m *ChatModel, r drawbridge.ModelRequest) (path string, body any)
	reader  func(a *answer) streamReader
	// wireName returns the name of a tool on the wire; nil means wireName.
	wireName func(drawbridge.CardName) string
	// listPath is the path of the list of models, and parseList parses it. It returns false if raw is not such a list.
	listPath  string
	parseList func(raw []byte) (all []listedModel, ok bool)
}

// thinkingSupport says how a model of Anthropic thinks. It is the zero value for others.
type thinkingSupport struct {
	// known is set if the provider told.
	known bool
	// adaptive, budget and off report whether the model accepts thinking as it decides, within a budget, and not at all.
	adaptive, budget, off bool
	efforts               []string
}

// A ChatModel is a language model at a provider. Its methods may be called from several goroutines.
type ChatModel struct {
	provider *chatProvider
	info     drawbridge.ModelInfo
	thinking thinkingSupport
	// thinks reports whether the model can think; nil means that it is not known.
	thinks *bool
	// official is set for the provider's own address.
	official bool
}

var _ Generator = (*ChatModel)(nil)

// Info describes the model.
func (m *ChatModel) Info() drawbridge.ModelInfo { return m.info }

// isOwn reports whether model is this model, as "provider/name".
func (m *ChatModel) isOwn(model string) bool { return model == m.info.String() }

// mayThink reports whether the model can think, as the provider or the settings tell, or judging by its name.
func (m *ChatModel) mayThink() bool {
	switch {
	case m.thinks != nil:
		return *m.thinks
	case m.provider.kind == KindGemini:
		return geminiThinks(m.info.Name)
	case m.provider.kind == KindOpenAI, m.official:
		return openAIThinks(m.info.Name)
	}
	return true
}

// tools returns the tools that are sent. Deferred tools are not sent to a model that cannot search for them.
func (m *ChatModel) tools(r drawbridge.ModelRequest) (all []drawbridge.ToolDefinition) {
	for _, t := range r.Tools {
		if !t.Deferred || m.info.DeferredTools {
			all = append(all, t)
		}
	}
	return all
}

// Generate asks the model for the next message of a conversation. It calls onDelta, one call at a time, for each piece
// of the answer that arrives; nil ignores the pieces. It repeats a request as the provider asks, at most three times,
// and first calls onDelta with the reason. The error is a *drawbridge.ModelError, or the cause of ctx's end. An answer
// that is not complete is an error.
func (m *ChatModel) Generate(ctx context.Context, r drawbridge.ModelRequest, onDelta func(drawbridge.ModelDelta)) (
	drawbridge.ModelResponse, error) {
	if onDelta == nil {
		onDelta = func(drawbridge.ModelDelta) {}
	}
	path, body, err := m.encode(r)
	if err != nil {
		return drawbridge.ModelResponse{}, &drawbridge.ModelError{Code: drawbridge.ModelRejected, Model: m.info.String(),
			Err: err}
	}
	pause := firstChatPause
	for attempt := 1; ; attempt++ {
		response, err := m.ask(ctx, path, body, r, onDelta)
		if err == nil {
			return response, nil
		}
		if ctx.Err() != nil {
			return drawbridge.ModelResponse{}, context.Cause(ctx)
		}
		failed := m.modelError(err, r)
		wait := pause
		if answer, ok := errors.AsType[*ProviderError](err); ok && answer.Delay > 0 {
			wait = answer.Delay
		}
		deadline, limited := ctx.Deadline()
		if !classify(err).retry || attempt == maxChatAttempts || wait > maxChatPause ||
			limited && time.Until(deadline) <= wait {
			return drawbridge.ModelResponse{}, failed
		}
		onDelta(drawbridge.ModelDelta{Retry: &drawbridge.ModelRetry{Attempt: attempt + 1, After: wait, Err: failed}})
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return drawbridge.ModelResponse{}, context.Cause(ctx)
		}
		pause *= 2
	}
}

// encode returns the path and the body of a request.
func (m *ChatModel) encode(r drawbridge.ModelRequest) (path string, body []byte, err error) {
	if !m.info.Images {
		r.Messages = withoutImages(r.Messages)
	}
	path, value := m.provider.api.request(m, r)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return "", nil, errors.New("write the request: the conversation has a part that is not JSON")
	}
	if b.Len() > maxRequest {
		return "", nil, fmt.Errorf("write the request: it is larger than %d MiB", maxRequest>>20)
	}
	return path, b.Bytes(), nil
}

// ask sends a request once and reads the answer.
func (m *ChatModel) ask(ctx context.Context, path string, body []byte, r drawbridge.ModelRequest,
	onDelta func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
	p := m.provider
	toWire := p.api.wireName
	if toWire == nil {
		toWire = wireName
	}
	names := map[string]drawbridge.CardName{}
	for _, t := range r.Tools {
		names[toWire(t.Name)] = t.Name
	}
	a := &answer{model: m.info.String(), usedIDs: callIDs(r.Messages), emit: onDelta,
		cardName: func(wire string) drawbridge.CardName {
			if name, ok := names[wire]; ok {
				return name
			}
			return drawbridge.CardName(wire)
		}}
	request := apiRequest{url: p.base + path, header: p.api.header, addKey: p.api.addKey}
	return p.client.stream(ctx, request, body, p.firstTimeout, p.nextTimeout, p.api.reader(a))
}

// modelError returns the error of Generate for an error of ask.
func (m *ChatModel) modelError(err error, r drawbridge.ModelRequest) *drawbridge.ModelError {
	p := m.provider
	e := &drawbridge.ModelError{Code: classify(err).code, Model: m.info.String()}
	e.Err = explain(err, e.Code, p.knownSecrets(), r)
	if e.Code == drawbridge.ModelKeyMissing {
		e.Err = nil // the code says it all
		if cause, ok := errors.AsType[keyError](err); ok {
			e.Err = cause
		}
	}
	switch e.Code {
	case drawbridge.ModelKeyMissing, drawbridge.ModelKeyRejected:
		e.Next = p.keyHint()
	case drawbridge.ModelUnknown:
		e.Next = "drawbridge models " + p.name + " lists the models"
	case drawbridge.ModelUnreachable:
		if p.settings.BaseURL == "" {
			e.Next = p.builtIn.startHint
		}
	}
	return e
}

// knownSecrets returns the key and the values of headers that were found.
func (p *chatProvider) knownSecrets() []string {
	p.client.mu.Lock()
	defer p.client.mu.Unlock()
	all := []string{p.client.key.Reveal()}
	if p.known != nil {
		all = append(all, p.known.All()...)
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}
