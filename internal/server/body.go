package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyTimeout is the time limit for receiving the body of a request, where a deadline can be set.
const bodyTimeout = time.Minute

// withBodyDeadlines bounds two waits of net/http that have no limit of their own. Before it answers a refused request
// it reads the announced body, and it waits for the client to read a short response. [readBody] lifts the first bound
// after it has read to the end; writes within h have their own.
func withBodyDeadlines(h http.Handler, answer time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w) // net/http's own writer supports deadlines
		_ = rc.SetWriteDeadline(time.Time{})
		if r.ContentLength != 0 {
			_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		h.ServeHTTP(w, r)
		_ = rc.SetWriteDeadline(time.Now().Add(bodyTimeout + answer)) // the body may come first
	})
}

// readBody reads a request's body, of at most most bytes, into one buffer. It reports false if it has answered the
// request itself.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, bool) {
	tooLarge := func() ([]byte, bool) {
		w.Header().Set("Connection", "close")
		http.Error(w, "Request Entity Too Large", http.StatusRequestEntityTooLarge)
		return nil, false
	}
	if r.ContentLength > most {
		return tooLarge()
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer supports it
	body, err := readBounded(r.Body, r.ContentLength, most)
	switch {
	case errors.Is(err, errBodyTooLarge):
		return tooLarge()
	case err != nil:
		http.Error(w, "Bad Request: the body is cut off", http.StatusBadRequest)
		return nil, false // the deadline stays: see withBodyDeadlines
	}
	_ = rc.SetReadDeadline(time.Time{})
	return body, true
}

var errBodyTooLarge = errors.New("body is over the size bound")

// readBounded reads a body of the announced length; -1 is unknown. Memory for a long body grows with the bytes
// received: to announce a length costs a client nothing.
func readBounded(r io.Reader, length, most int64) ([]byte, error) {
	if length >= 0 && length <= 1<<20 {
		body := make([]byte, length)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(body)) > most {
		err = errBodyTooLarge
	}
	return body, err
}
