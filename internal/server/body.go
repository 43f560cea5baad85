package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyTimeout is the time limit for receiving the body of a request. It applies only if the ResponseWriter supports
// deadlines.
const bodyTimeout = time.Minute

// withBodyDeadlines returns a handler that calls h and sets deadlines for two operations that net/http does not limit.
// First, if a request is refused, net/http reads the rest of its body before it sends the response. Second, net/http
// waits until the client has read a short response. [readBody] removes the read deadline when it has read the whole
// body; h sets its own write deadlines.
func withBodyDeadlines(h http.Handler, answer time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w) // the writer of net/http supports deadlines
		_ = rc.SetWriteDeadline(time.Time{})
		if r.ContentLength != 0 {
			_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		h.ServeHTTP(w, r)
		_ = rc.SetWriteDeadline(time.Now().Add(bodyTimeout + answer)) // net/http may read the rest of the body first
	})
}

// readBody reads the body of a request into one buffer. If the body is larger than most bytes, or is cut off, it sends
// an error response and returns false.
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
		return nil, false // keep the deadline, see withBodyDeadlines
	}
	_ = rc.SetReadDeadline(time.Time{})
	return body, true
}

var errBodyTooLarge = errors.New("body is over the size bound")

// readBounded reads a body of the announced length, or of unknown length if length is -1. For a long body, the buffer
// grows with the received bytes and is not allocated in advance, because a client can announce any length.
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
