package deck

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestPanicsTellNoSecret has guards and a card that panic with what they have in their hands.
func TestPanicsTellNoSecret(t *testing.T) {
	const canary = "canary-argument"
	for want, panics := range map[string]func(Question){
		`panic="a string" at=github.com/drawbridge-mcp/drawbridge/deck.TestPanicsTellNoSecret.func`: func(
			q Question) {
			panic("no rule for " + string(q.Params))
		},
		`panic="a *fmt.wrapError" at=github.com/drawbridge-mcp/drawbridge/deck.TestPanicsTellNoSecret.func`: func(
			q Question) {
			panic(fmt.Errorf("%s: %w", q.Params, errors.ErrUnsupported))
		},
		`index out of range [5] with length 1" at=github.com/drawbridge-mcp/drawbridge/deck.TestPanicsTellNoSecret.func`: func(q Question) {
			five := 5
			_ = []string{string(q.Params)}[five]
		},
	} {
		var log bytes.Buffer
		d := open(t, &fake{}, Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Guards: []Guard{guard(func(q Question) drawbridge.Verdict { panics(q); return drawbridge.Verdict{} })},
		}, listing("a", "x"))
		_, err := d.Call(t.Context(), drawbridge.Call{Caller: ada,
			Params: []byte(`{"name":"a__x","arguments":{"key":"` + canary + `"}}`)})
		wantFault(t, err, drawbridge.PolicyBlocked, "tools/call a__x: it is not allowed")
		if !strings.Contains(log.String(), want) || strings.Contains(log.String()+err.Error(), canary) {
			t.Errorf("%v, and in the log %s, want %s", err, &log, want)
		}
	}
	var log bytes.Buffer
	d := open(t, &fake{}, Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Cards:  []drawbridge.Card{card{"own", func() (drawbridge.Result, error) { panic(canary) }}},
	})
	err := call(t, d, ada, "own")
	wantFault(t, err, drawbridge.ServerError, "internal error: see the log")
	if strings.Contains(log.String()+err.Error(), canary) || !strings.Contains(log.String(), "a card panicked") {
		t.Errorf("%v, and in the log %s", err, &log)
	}
}
