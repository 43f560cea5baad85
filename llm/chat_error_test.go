package llm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestClassify shows how the errors of providers are classified.
func TestClassify(t *testing.T) {
	const (
		again, final = true, false
	)
	for _, tt := range []struct {
		status int
		body   string
		want   failure
	}{
		{400, `{"error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 32000 > 200000"}}`,
			failure{drawbridge.ModelContextTooLong, final}},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size (4096 tokens)","type":"exceed_context_size_error"}}`,
			failure{drawbridge.ModelContextTooLong, final}},
		{400, `{"error":{"message":"This endpoint's maximum context length is 32768 tokens.","code":400}}`,
			failure{drawbridge.ModelContextTooLong, final}},
		{413, `{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`,
			failure{drawbridge.ModelContextTooLong, final}},
		{429, `{"error":{"type":"rate_limit_error","message":"would exceed the context window rate"}}`,
			failure{drawbridge.ModelRateLimited, again}},
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`,
			failure{drawbridge.ModelKeyRejected, final}},
		{400, `[{"error":{"code":400,"message":"x","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]`,
			failure{drawbridge.ModelKeyRejected, final}},
		{403, `{"error":{"type":"permission_error"}}`, failure{drawbridge.ModelKeyRejected, final}},
		{403, `{"error":{"type":"billing_error"}}`, failure{drawbridge.ModelQuota, final}},
		{429, `{"error":{"message":"Insufficient balance or no resource package."}}`, failure{drawbridge.ModelQuota, final}},
		{404, `{"error":"model 'x' not found"}`, failure{drawbridge.ModelUnknown, final}},
		{400, `{"error":{"code":"model_not_found"}}`, failure{drawbridge.ModelUnknown, final}},
		{500, `{"error":{"type":"api_error","message":"Internal server error: credit balance"}}`, failure{drawbridge.ModelUnreachable, again}},
		{503, `{"error":{"message":"Loading model"}}`, failure{drawbridge.ModelOverloaded, again}},
		{504, "", failure{drawbridge.ModelUnreachable, again}},
		{501, "", failure{drawbridge.ModelRejected, final}},
		{422, `{"detail":"tools are not supported"}`, failure{drawbridge.ModelRejected, final}},
		{301, "", failure{drawbridge.ModelUnreachable, final}},
		{0, `{"error":{"code":"server_error"}}`, failure{drawbridge.ModelBroken, again}},
		{0, `{"error":{"code":"invalid_prompt"}}`, failure{drawbridge.ModelRejected, final}},
		{0, `{"error":{"code":"rate_limit_exceeded"}}`, failure{drawbridge.ModelRateLimited, again}},
	} {
		e := &ProviderError{Status: tt.status, Code: providerErrorCode([]byte(tt.body)), body: []byte(tt.body)}
		if got := classify(fmt.Errorf("ask: %w", e)); got != tt.want {
			t.Errorf("%d %s: %+v, want %+v", tt.status, tt.body, got, tt.want)
		}
	}
	for err, want := range map[error]failure{
		errKeyNotFound:                  {drawbridge.ModelKeyMissing, final},
		keyError{errors.New("no file")}: {drawbridge.ModelKeyMissing, final},
		errTimeout:                      {drawbridge.ModelUnreachable, again},
		errCertificate:                  {drawbridge.ModelUnreachable, final},
		errSilent:                       {drawbridge.ModelUnreachable, final},
		errCut:                          {drawbridge.ModelBroken, again},
		errStalled:                      {drawbridge.ModelBroken, again},
		errNotStream:                    {drawbridge.ModelBroken, final},
	} {
		if got := classify(err); got != want {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
	}
}

// TestDelays shows which pause a provider asks for.
func TestDelays(t *testing.T) {
	const info = `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.Help"},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2.5s"}]}}`
	for _, tt := range []struct {
		header http.Header
		body   string
		want   time.Duration
	}{
		{http.Header{"Retry-After": {"7"}}, info, 7 * time.Second},
		{http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"250.5"}}, "", 250500 * time.Microsecond},
		{http.Header{}, info, 2500 * time.Millisecond},
		{http.Header{}, "[" + info + "]", 2500 * time.Millisecond},
		{http.Header{"Retry-After": {"soon"}, "Retry-After-Ms": {"NaN"}}, `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-1s"}]}}`, 0},
	} {
		e := readErrorResponse(&http.Response{StatusCode: 429, Header: tt.header, Body: readCloser{strings.NewReader(tt.body)}})
		if e.Delay != tt.want {
			t.Errorf("%v %s: %v, want %v", tt.header, tt.body, e.Delay, tt.want)
		}
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// FuzzExplain reads whatever a provider says is wrong: the error has neither the key nor a long part of the conversation,
// and is short and printable.
func FuzzExplain(f *testing.F) {
	const secret, diary = "sk-very-secret-0123456789", "a_long_line_of_the_conversation"
	f.Add(400, `{"error":{"message":"sk-very-secret-0123456789 is wrong: a_long_line_of_the_conversation"}}`)
	f.Add(0, `{"detail":"\u001b[2J sk-very-secret-0123456789"}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := &ProviderError{Status: status, Code: providerErrorCode([]byte(body)), body: []byte(body)}
		r := drawbridge.ModelRequest{Messages: []drawbridge.Message{drawbridge.NewUserMessage(diary)}}
		text := explain(e, classify(e).code, []string{secret}, r).Error()
		if strings.Contains(text, secret) || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) ||
			len(text) > 400 {
			t.Errorf("%q", text)
		}
		for i := range len(diary) - minEcho + 1 {
			if strings.Contains(text, diary[i:i+minEcho]) {
				t.Errorf("%q has %q", text, diary[i:i+minEcho])
			}
		}
	})
}
