package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// testPageBeforeTheEnd has a command end as soon as its sign-in does, as drawbridge mcp auth does with a refused one:
// the browser still gets its page, each time.
func testPageBeforeTheEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(url.Values)
		status int
		says   string
	}{
		"refused": {func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, 400, "access_denied"},
		"from another issuer": {func(q url.Values) { q.Set("iss", "https://evil.example") }, 400,
			"from another issuer, https://evil.example"},
		"successful": {func(url.Values) {}, 200, "Authorization successful"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				y := meet(t, oauthtest.Options{}, nil)
				f := y.begin()
				callback := with(t, y.follow(f), tt.change)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = f.Wait(t.Context())
					y.desk.Close()
				}()
				status, page := get(t, callback)
				<-ended
				if status != tt.status || !strings.Contains(page, tt.says) {
					t.Fatalf("%d, %s", status, page)
				}
				if _, err := http.Get(callback); err == nil {
					t.Fatal("the port is still open")
				}
			}
		})
	}
}
