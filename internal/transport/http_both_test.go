package transport_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// The transports that pass the same tests: ours, and that of net/http alone.
const ours, standard = "ours", "net-http"

// overBoth runs a test over each transport.
func overBoth(t *testing.T, test func(*testing.T)) {
	t.Helper()
	for _, name := range []string{ours, standard} {
		t.Run(name, test)
	}
}

// usesStandard reports whether the test runs over net/http alone.
func usesStandard(t testing.TB) bool {
	for part := range strings.SplitSeq(t.Name(), "/") {
		if part == standard {
			return true
		}
	}
	return false
}

// A roundTripper is what both transports can do.
type roundTripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

// transportFor returns the transport that the test runs over, until the test ends. A nil dial is the guarded dialler,
// and a nil config trusts what the system trusts.
func transportFor(t testing.TB, address string, own bool,
	dial func(context.Context, string, string) (net.Conn, error), config *tls.Config) roundTripper {
	t.Helper()
	var tr roundTripper
	if usesStandard(t) {
		plain := transport.NewStandardTransport(address, own)
		if dial != nil {
			plain.DialContext = dial
		}
		plain.TLSClientConfig = config
		tr = plain
	} else {
		own := transport.NewHTTPTransport(address, own)
		if dial != nil {
			own.SetDial(dial)
		}
		if config != nil {
			own.SetTLS(config)
		}
		tr = own
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}
