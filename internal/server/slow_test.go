package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A pipes listens to whoever is sent to it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// served is a connection to a server with a token, and what ends both.
func served(t *testing.T) (client net.Conn, end func()) {
	t.Helper()
	s := newServer(t, newFakeDeck(), Options{Token: []byte("t")})
	ctx, stop := context.WithCancel(t.Context())
	l := make(pipes)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	client, other := net.Pipe()
	l <- other
	return client, func() {
		_ = client.Close()
		stop()
		<-ended
	}
}

// TestABodyThatDoesNotCome: who announces a body and does not send it is waited for no longer than others, wherever it
// is for.
func TestABodyThatDoesNotCome(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		want    int
	}{
		"without a token":      {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", 401},
		"under a foreign host": {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\n", 401},
		"no route":             {"POST / HTTP/1.1\r\nHost: localhost\r\n", 404},
		"metadata":             {"GET /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: localhost\r\n", 404},
		"with a token":         {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer t\r\n", 400},
		"a stream":             {"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, end := served(t)
				defer end()
				_ = client.SetDeadline(time.Now().Add(2 * bodyTimeout))
				if _, err := io.WriteString(client, tt.request+"Content-Length: 10\r\n\r\n"); err != nil {
					t.Error(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Errorf("no answer in %v: %v", 2*bodyTimeout, err)
				} else if resp.StatusCode != tt.want {
					t.Errorf("status %d, want %d", resp.StatusCode, tt.want)
				}
			})
		})
	}
}

// TestAnAnswerThatNobodyReads: who asks and does not read is not waited for, with a token or without.
func TestAnAnswerThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, end := served(t)
		defer end()
		const request = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"
		answers := bufio.NewReader(client)
		for range 2 { // the time for the first does not count for the second
			if _, err := io.WriteString(client, request); err != nil {
				t.Error(err)
			}
			if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != 401 {
				t.Errorf("the answer: %v", err)
			} else if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Error(err)
			}
			<-time.After(idleTime - time.Second)
		}
		if _, err := io.WriteString(client, request); err != nil {
			t.Error(err)
		}
		<-time.After(2 * (bodyTimeout + writeTime))
		if n, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%d bytes still wait to be read: %v", n, err)
		}
	})
}
