package llm

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// fallbackPeriod is how long the fallback model is asked first after the main model has failed. A turn has many
// requests, and each would wait for the retries of the main model.
const fallbackPeriod = time.Minute

// A FallbackModel asks its main model, and another model if the main model fails. Its methods may be called from
// several goroutines.
type FallbackModel struct {
	main, fallback Generator

	mu    sync.Mutex
	until time.Time // until then the fallback model is asked first
}

var _ Generator = (*FallbackModel)(nil)

// NewFallbackModel returns a model that asks main, and fallback if main fails with an error that allows it. For a
// minute after that, it asks fallback first.
func NewFallbackModel(main, fallback Generator) *FallbackModel {
	return &FallbackModel{main: main, fallback: fallback}
}

// Info describes the main model. The window is the smaller one, so that a conversation fits into both.
func (f *FallbackModel) Info() drawbridge.ModelInfo {
	i, other := f.main.Info(), f.fallback.Info()
	if i.Window == 0 || other.Window > 0 && other.Window < i.Window {
		i.Window = other.Window
	}
	i.Images = i.Images && other.Images
	i.DeferredTools = i.DeferredTools && other.DeferredTools
	return i
}

// Generate asks the models; see ChatModel.Generate. Before it asks the second model, it calls onDelta with a Retry, so
// that what arrived of the first answer is void. The error is that of the model that was asked first.
func (f *FallbackModel) Generate(ctx context.Context, r drawbridge.ModelRequest,
	onDelta func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
	if onDelta == nil {
		onDelta = func(drawbridge.ModelDelta) {}
	}
	attempts := 1
	counted := func(d drawbridge.ModelDelta) {
		if d.Retry != nil {
			attempts++
			retry := *d.Retry
			retry.Attempt = attempts
			d.Retry = &retry
		}
		onDelta(d)
	}
	first, second := f.main, f.fallback
	if f.mainFailed() {
		first, second = second, first
	}
	response, err := first.Generate(ctx, r, counted)
	failed, ok := errors.AsType[*drawbridge.ModelError](err)
	if err == nil {
		response.Price = first.Info().Price
	}
	if err == nil || ctx.Err() != nil || !ok || !failed.MayFallBack() {
		return response, err
	}
	counted(drawbridge.ModelDelta{Retry: &drawbridge.ModelRetry{Err: err}})
	response, secondErr := second.Generate(ctx, r, counted)
	switch {
	case secondErr == nil:
		f.note(second == f.fallback)
		response.Price = second.Info().Price
		return response, nil
	case ctx.Err() != nil:
		return drawbridge.ModelResponse{}, secondErr
	}
	return drawbridge.ModelResponse{}, err
}

// mainFailed reports whether the main model failed a short time ago.
func (f *FallbackModel) mainFailed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Before(f.until)
}

// note records which model answered after the other had failed.
func (f *FallbackModel) note(fallback bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Time{}
	if fallback {
		f.until = time.Now().Add(fallbackPeriod)
	}
}
