package llm_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"go.uber.org/goleak"
)

// TestChatOverTCP asks over a real connection, with the default transport: an answer, a redirect that would give the key
// to another server, and a call that is cancelled. No goroutine is left.
func TestChatOverTCP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var stolen atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Store(true) }))
	defer thief.Close()
	for _, kind := range chatKinds {
		files := chatFiles(t, kind)
		begun := make(chan struct{})
		n := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method == http.MethodGet {
				http.NotFound(w, r)
				return
			}
			switch n++; n {
			case 1:
				streams(files["text"])(w, r)
			case 2:
				http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
			case 3:
				streams(files["text"][:len(files["text"])/3])(w, r)
				_ = http.NewResponseController(w).Flush()
				close(begun)
				<-r.Context().Done()
			}
		}))
		models, err := llm.OpenChatModels(llm.ChatOptions{Providers: []config.ModelProvider{{Name: "p", Kind: kind,
			BaseURL: server.URL, Key: config.SecretRef{Parts: []config.ValuePart{{Text: chatKey}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := models.Find(t.Context(), "p/"+modelNames[kind])
		if err != nil {
			t.Fatal(err)
		}
		if r, err := m.Generate(t.Context(), ask(), nil); err != nil || r.Message.Text() != "Hello, wörld." {
			t.Errorf("%s: %+v %v", kind, r, err)
		}
		if _, err := m.Generate(t.Context(), ask(), nil); codeOf(t, err) != drawbridge.ModelUnreachable || stolen.Load() ||
			strings.Contains(err.Error(), "very-secret") {
			t.Errorf("%s: %v", kind, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := m.Generate(ctx, ask(), nil)
			ended <- err
		}()
		<-begun
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("%s: %v", kind, err)
		}
		_ = models.Close()
		server.Close()
	}
}
