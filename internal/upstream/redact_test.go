package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

func TestVeil(t *testing.T) {
	var v secretRedactor
	row := serverValueResolver{Server: config.Server{DeferredValues: []config.DeferredValue{{Name: "env PLAIN",
		Parts: []config.ValuePart{{Kind: config.FilePart, Text: "f"}}}}}}
	v.addPairs(row, "env", []config.NameValue{
		{Name: "PLAIN", Value: "from-a-file"}, {Name: "API_TOKEN", Value: "a-token"}, {Name: "LONGER_TOKEN",
			Value: "a-token-that-is-longer"},
		{Name: "MODE", Value: "production"}, {Name: "PIN_TOKEN", Value: "12345"},
		{Name: "PRIVATE_KEY", Value: "first-line\nsecond-line\n"},
	})
	v.addPairs(row, "header", []config.NameValue{{Name: "Authorization", Value: "Bearer a-bearer"},
		{Name: "Accept", Value: "text/plain"}})
	v.addToken("given")
	for text, want := range map[string]string{
		"":                           "",
		"mode production, pin 12345": "mode production, pin 12345",
		"read from-a-file":           "read " + drawbridge.Redacted,
		"a-token, a-token-that-is-longer, from-a-file": drawbridge.Redacted + ", " + drawbridge.Redacted + ", " +
			drawbridge.Redacted,
		"got a-bearer as Bearer": "got " + drawbridge.Redacted + " as Bearer",
		"second-line first-line": drawbridge.Redacted + " " + drawbridge.Redacted,
		"given text/plain":       "given text/plain",
	} {
		if got := v.redact(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	var none secretRedactor
	if got := none.redact("a-token"); got != "a-token" {
		t.Errorf("nothing is hidden yet, and %q", got)
	}
	if err := v.redactError(nil); err != nil {
		t.Error(err)
	}
	if err := v.redactError(io.EOF); err != io.EOF {
		t.Errorf("%v is another one", err)
	}
	err := v.redactError(fmt.Errorf("no a-token: %w", io.EOF))
	if err.Error() != "no "+drawbridge.Redacted+": EOF" || !errors.Is(err, io.EOF) ||
		strings.Contains(fmt.Sprintf("%v %+v", err, err), "a-token") {
		t.Errorf("%+v", err)
	}
	for i := range 2 * maxTokens {
		v.addToken(fmt.Sprint("a value number ", i))
	}
	if got := v.redact(fmt.Sprint("a value number ", 2*maxTokens-1)); got != drawbridge.Redacted ||
		len(v.tokens) != maxTokens {
		t.Errorf("%q; %d are known", got, len(v.tokens))
	}
	if got := v.redact("from-a-file"); got != drawbridge.Redacted {
		t.Errorf("after many tokens it is %q", got)
	}
}

// A signer hands out one token, and after a refusal another.
type signer struct{}

func (signer) Token(context.Context) (string, error) { return "the-first-one", nil }

func (signer) ReplaceToken(context.Context, string, int, http.Header, []byte) (string, error) {
	return "the-second-one", nil
}

func TestVeilOverTokens(t *testing.T) {
	var v secretRedactor
	s := v.wrapTokenSource(signer{})
	const said = "the-first-one, the-second-one"
	if got := v.redact(said); got != said {
		t.Errorf("before: %q", got)
	}
	if token, err := s.Token(t.Context()); token != "the-first-one" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	if got := v.redact(said); got != drawbridge.Redacted+", the-second-one" {
		t.Errorf("after the first: %q", got)
	}
	if token, err := s.ReplaceToken(t.Context(), "the-first-one", http.StatusUnauthorized, nil,
		nil); token != "the-second-one" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	if got := v.redact(said); got != drawbridge.Redacted+", "+drawbridge.Redacted {
		t.Errorf("after both: %q", got)
	}
}

func FuzzVeil(f *testing.F) {
	f.Add("a-secret", "said a-secret twice: a-secret")
	f.Add("s3cret", "s3cs3cretret")
	f.Fuzz(func(t *testing.T, secret, text string) {
		var v secretRedactor
		v.addToken(secret)
		got := v.redact(text)
		for _, s := range v.tokens {
			if n := strings.Count(text, s); strings.Count(got, drawbridge.Redacted) < n {
				t.Errorf("%q in %q: %q", s, text, got)
			}
		}
	})
}
