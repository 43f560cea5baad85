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

// A Request is one that the provider got.
type Request struct {
	Endpoint Endpoint
	Method   string
	// Host is the host it was sent to, Path and Query its URL, Form the members of a form-encoded body.
	Host, Path  string
	Query, Form url.Values
	Header      http.Header
	Body        []byte
	// Status is what it was answered with; 0 is not yet, or never.
	Status int
	At     time.Time
}

// Counts are how often something was granted, or refused.
type Counts struct {
	// Registrations are clients that registered, Authorizations requests to sign in that were granted.
	Registrations, Authorizations int
	// Tokens are all answers with a token; the others those of one grant.
	Tokens, Codes, Refreshes, Devices, Credentials, Exchanges int
	// Refusals are errors in JSON, of every endpoint, authorization_pending and slow_down left out.
	Refusals int
	// Reuses are spent refresh tokens that came back, Replays spent codes. Revocations are families that ended.
	Reuses, Replays, Revocations int
	// Challenges are the answers 401 and 403 of the MCP server, Calls the requests that it let in.
	Challenges, Calls int
}

// Counts returns the counters so far.
func (p *Provider) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Refreshes is how many refreshes were granted.
func (p *Provider) Refreshes() int { return p.Counts().Refreshes }

// Registrations is how many clients registered.
func (p *Provider) Registrations() int { return p.Counts().Registrations }

// Authorizations returns the number of granted sign-ins.
func (p *Provider) Authorizations() int { return p.Counts().Authorizations }

// Requests returns the requests to some endpoints, in order of arrival; to all if none is named.
func (p *Provider) Requests(of ...Endpoint) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.requests), func(r Request) bool {
		return len(of) > 0 && !slices.Contains(of, r.Endpoint)
	})
}

// maxRequestBody is how much of a body is read.
const maxRequestBody = 16 << 20

// recordRequests records the requests of an endpoint and has its faults happen to them.
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

// A statusWriter tells of the status that is written through it.
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

// Unwrap lets a ResponseController flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher for callers that use the writer itself.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// endpointNames are those of an endpoint in this request, the narrowest first.
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

// replace writes the answer of a fault, or, where it has none, the endpoint's own.
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

// fault returns the fault that happens to a request now.
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

// wait lets time pass. Where the client or the provider goes away meanwhile, the request ends there.
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
