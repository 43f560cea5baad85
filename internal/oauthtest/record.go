package oauthtest

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"time"
)

// A Request is a request that the provider received.
type Request struct {
	Endpoint Endpoint
	Method   string
	// Host is the host to which the request was sent. Path and Query are the parts of its URL. Form has the members of
	// a form-encoded body.
	Host, Path  string
	Query, Form url.Values
	Header      http.Header
	Body        []byte
	// Status is the status of the response; 0 means that no response was sent yet.
	Status int
	At     time.Time
}

// Counts are the numbers of granted and refused requests.
type Counts struct {
	// Registrations counts registered clients. Authorizations counts granted requests to sign in.
	Registrations, Authorizations int
	// Tokens counts issued access tokens. Each of the other fields counts the granted token requests of one grant type.
	Tokens, Codes, Refreshes, Devices, Credentials, Exchanges int
	// Refusals counts the OAuth error responses of all endpoints, except authorization_pending and slow_down.
	Refusals int
	// Reuses counts the refresh tokens that were sent again after use. Replays counts the authorization codes that were
	// sent again after use. Revocations counts the token families that ended.
	Reuses, Replays, Revocations int
	// Challenges counts the responses of the MCP server with status 401 or 403. Calls counts the requests that it
	// accepted.
	Challenges, Calls int
}

// Counts returns the current counters.
func (p *Provider) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Refreshes returns the number of granted refreshes.
func (p *Provider) Refreshes() int { return p.Counts().Refreshes }

// Registrations returns the number of registered clients.
func (p *Provider) Registrations() int { return p.Counts().Registrations }

// Authorizations returns the number of granted sign-ins.
func (p *Provider) Authorizations() int { return p.Counts().Authorizations }

// Requests returns the requests to the given endpoints in order of arrival, or all requests if no endpoint is given.
func (p *Provider) Requests(of ...Endpoint) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.requests), func(r Request) bool {
		return len(of) > 0 && !slices.Contains(of, r.Endpoint)
	})
}

// maxRequestBody is the maximum number of bytes that are read of a request body.
const maxRequestBody = 16 << 20

// recordRequests returns a handler that records each request of the endpoint e. It then serves the request with h, and
// applies the faults and gates of the endpoint.
func (p *Provider) recordRequests(e Endpoint, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBody))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if kind, _, _ := mime.ParseMediaType(
			r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
			_ = r.ParseForm()
		}
		n := p.record(Request{
			Endpoint: e, Method: r.Method, Host: r.Host, Path: r.URL.Path, Query: r.URL.Query(), Form: r.PostForm,
			Header: r.Header.Clone(), Body: body, At: time.Now(),
		})
		sw := &statusWriter{ResponseWriter: w, wrote: func(status int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.requests[n].Status = status
		}}
		w.Header().Set("Date", p.currentKnobs().clock().UTC().Format(http.TimeFormat))
		p.serveWithFaults(sw, r, e, h)
	}
}

func (p *Provider) record(r Request) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	return len(p.requests) - 1
}

// A statusWriter calls wrote with the status of the response.
type statusWriter struct {
	http.ResponseWriter
	wrote func(int)
	done  bool
}

func (w *statusWriter) WriteHeader(status int) {
	if !w.done {
		w.done = true
		w.wrote(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if !w.done {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap returns the underlying writer, which http.ResponseController uses to flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher for callers that use the writer itself.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// endpointNames returns the names under which faults and gates for a request may be set, the most specific one first.
// For a token request, these are "token/GRANT" and "token".
func endpointNames(e Endpoint, r *http.Request) []Endpoint {
	if e == Token {
		return []Endpoint{e + "/" + Endpoint(r.PostForm.Get("grant_type")), e}
	}
	return []Endpoint{e}
}

// serveWithFaults serves a request with the faults and gates that apply to it.
func (p *Provider) serveWithFaults(w http.ResponseWriter, r *http.Request, e Endpoint, h http.HandlerFunc) {
	all := endpointNames(e, r)
	fault, faulty := p.fault(all)
	p.waitAtGate(r, all, BeforeHandling)
	if faulty && !fault.After {
		p.wait(r, fault.Slow)
	}
	after := p.gate(all, AfterHandling)
	if after == nil && !(faulty && fault.After) {
		p.replace(w, r, fault, h)
		return
	}
	answer := httptest.NewRecorder()
	h(answer, r)
	p.waitAt(r, after)
	if faulty {
		p.wait(r, fault.Slow)
	}
	p.replace(w, r, fault, func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// replace sends the response that the fault f sets, or calls own to send the endpoint's response if f sets none.
func (p *Provider) replace(w http.ResponseWriter, r *http.Request, f Fault, own http.HandlerFunc) {
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Status == 0:
		own(w, r)
	default:
		if f.Type != "" {
			w.Header().Set("Content-Type", f.Type)
		}
		for name, value := range f.Header {
			w.Header().Set(name, p.fillURLs(value))
		}
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, p.fillURLs(f.Body))
	}
}

// fault returns and counts the fault that applies to a request. It returns false if there is none.
func (p *Provider) fault(all []Endpoint) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range all {
		f, ok := p.knobs.Faults[e]
		if !ok || f.Times > 0 && p.faults[e] >= f.Times {
			continue
		}
		p.faults[e]++
		return f, true
	}
	return Fault{}, false
}

// wait waits for the duration d. If the client disconnects or the provider is closed before, wait aborts the request.
func (p *Provider) wait(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-r.Context().Done():
	case <-p.gone:
	}
	panic(http.ErrAbortHandler)
}
