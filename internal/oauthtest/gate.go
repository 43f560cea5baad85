package oauthtest

import (
	"net/http"
	"sync"
)

// A GateMoment is when a Gate holds a request.
type GateMoment int

// The moments: before the endpoint does anything, and after it has done all but answer.
const (
	BeforeHandling GateMoment = iota
	AfterHandling
)

type gatePosition struct {
	endpoint Endpoint
	moment   GateMoment
}

// A Gate holds requests until it is opened.
type Gate struct {
	// Arrived gets one value for each request that comes to the gate.
	Arrived <-chan struct{}

	arrived chan struct{}
	open    chan struct{}
	opening sync.Once
}

// Open lets through what waits and what will come.
func (g *Gate) Open() { g.opening.Do(func() { close(g.open) }) }

// Hold puts a gate at an endpoint. Requests wait there until it is opened, their client disconnects, or the provider
// ends. With the moment After, the request has been granted but the client has no response yet; a test can end the
// client there.
func (p *Provider) Hold(e Endpoint, at GateMoment) *Gate {
	arrived := make(chan struct{}, 1<<16)
	g := &Gate{Arrived: arrived, arrived: arrived, open: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gates[gatePosition{e, at}] = g
	return g
}

// gate returns the closed gate that applies to a request now, or nil.
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

// waitAtGate has a request wait at the gate that it meets at this moment.
func (p *Provider) waitAtGate(r *http.Request, all []Endpoint, at GateMoment) {
	p.waitAt(r, p.gate(all, at))
}

// waitAt waits at a gate. Where the client or the provider goes away meanwhile, the request ends there.
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
