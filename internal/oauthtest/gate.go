package oauthtest

import (
	"net/http"
	"sync"
)

// A GateMoment is the moment at which a Gate blocks a request.
type GateMoment int

// BeforeHandling is the moment before the endpoint handles the request. AfterHandling is the moment when the endpoint
// has handled the request, but the response is not sent yet.
const (
	BeforeHandling GateMoment = iota
	AfterHandling
)

type gatePosition struct {
	endpoint Endpoint
	moment   GateMoment
}

// A Gate blocks requests until it is opened.
type Gate struct {
	// Arrived receives one value for each request that reaches the gate.
	Arrived <-chan struct{}

	arrived chan struct{}
	open    chan struct{}
	opening sync.Once
}

// Open unblocks the waiting requests and all later ones.
func (g *Gate) Open() { g.opening.Do(func() { close(g.open) }) }

// Hold adds a gate at an endpoint. Requests wait at the gate until it is opened, their client disconnects, or the
// provider is closed. With AfterHandling, a test can stop a client whose request was granted, but which has no response
// yet.
func (p *Provider) Hold(e Endpoint, at GateMoment) *Gate {
	arrived := make(chan struct{}, 1<<16)
	g := &Gate{Arrived: arrived, arrived: arrived, open: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gates[gatePosition{e, at}] = g
	return g
}

// gate returns the gate that blocks a request at a moment, or nil. all are the names of the request's endpoint.
func (p *Provider) gate(all []Endpoint, at GateMoment) *Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range all {
		g := p.gates[gatePosition{e, at}]
		if g == nil {
			continue
		}
		select {
		case <-g.open:
		default:
			return g
		}
	}
	return nil
}

// waitAtGate blocks a request if there is a closed gate for this endpoint and moment.
func (p *Provider) waitAtGate(r *http.Request, all []Endpoint, at GateMoment) {
	p.waitAt(r, p.gate(all, at))
}

// waitAt blocks a request until the gate is opened. If the client disconnects or the provider is closed before, waitAt
// aborts the request.
func (p *Provider) waitAt(r *http.Request, g *Gate) {
	if g == nil {
		return
	}
	g.arrived <- struct{}{}
	select {
	case <-g.open:
		return
	case <-r.Context().Done():
	case <-p.gone:
	}
	panic(http.ErrAbortHandler)
}
