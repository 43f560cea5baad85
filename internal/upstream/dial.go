package upstream

import (
	"context"
	"net/http"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A dialFunc connects a session to its server: it sets s.conn and, if it starts a process, s.proc. sse selects the
// HTTP+SSE transport instead of Streamable HTTP. Tests replace it.
type dialFunc func(ctx context.Context, s *session, sse bool) error

// A startError reports a process that could not be started.
type startError struct{ error }

func (s *startError) Unwrap() error { return s.error }

// connect returns a new session that is connected to the server. It does not do the handshake.
func (g sessionOpener) connect(ctx context.Context) (*session, error) {
	return g.dial(ctx, g.server.config.Type == "sse")
}

// connectSSE connects with the HTTP+SSE transport of revision 2024-11-05.
func (g sessionOpener) connectSSE(ctx context.Context) (*session, error) { return g.dial(ctx, true) }

func (g sessionOpener) dial(ctx context.Context, sse bool) (*session, error) {
	s := newSession(g.server, g.key)
	if err := g.server.pool.dial(ctx, s, sse); err != nil {
		return nil, err
	}
	return s, nil
}

func newDialFunc(o Options) dialFunc {
	return func(ctx context.Context, s *session, sse bool) error {
		if s.server.config.URL == "" {
			return s.dialStdio(ctx)
		}
		return s.dialHTTP(ctx, o.HTTPClient, sse)
	}
}

// dialStdio starts the server's process and connects to its pipes.
func (s *session) dialStdio(ctx context.Context) error {
	row := s.server.config
	pairs, err := s.server.withKey(ctx, "env", s.server.resolveValues(ctx, "env", row.Env))
	if err != nil {
		return err
	}
	env, err := s.server.callerAuth().AddTokenVariable(ctx, s.key.principal, environFromPairs(pairs))
	if err != nil {
		return err
	}
	p, err := process.Start(ctx, process.Spec{
		Command:        row.Command,
		ResolveProgram: row.ApprovedProgram(),
		Args:           row.Args,
		Dir:            row.Cwd,
		Env:            process.Environ(s.server.environ, env, s.server.pool.inheritsEnv(row)),
		Confinement:    confine.ProfileFor(row, s.server.environ, s.key.principal),
		Grace:          s.server.pool.o.CloseGrace,
		RedactLine:     s.server.redactor.redact,
	})
	if err != nil {
		return &startError{err}
	}
	s.proc = p
	lines := mcp.NewLineReader(transport.NewPipeReader(p.Stdout()), 0)
	lines.UseBudget(context.WithoutCancel(ctx), s.server.pool.o.Answers,
		min(transport.RoomPatience, s.server.callTimeout()/2))
	s.conn = transport.NewStreamConn(ctx, transport.StreamConnOptions{
		Send: func(_ context.Context, msg []byte) error {
			_, err := p.Stdin().Write(msg)
			return err
		},
		TrySend:      transport.NonblockingPipeWriter(p.Stdin()),
		Receive:      lines.Next,
		MoreReceived: lines.HasMore,
		Close:        p.Stop,
		Handler:      s,
		OnJunk:       func([]byte) { s.junk.Add(1) },
		Logger:       s.server.log,
	})
	return nil
}

// ResolveProcess returns the program path and the environment with which the stdio server in row would be started. It
// starts nothing. ours is Drawbridge's environment and inherit is Options.InheritEnv. env contains the inherited
// variables of ours and the variables that the row sets, as "name=value" pairs. ResolveProcess returns an error if the
// program was not found.
func ResolveProcess(row config.Server, ours []string, inherit bool) (program string, env []string, err error) {
	p := Pool{o: Options{InheritEnv: inherit}}
	env = process.Environ(ours, environFromPairs(row.Env), p.inheritsEnv(row))
	program, err = process.FindProgram(row.Command, row.Cwd, env)
	return program, env, err
}

// CheckConfinement returns an error if the server in row must be confined and this machine does not support the
// required confinement. Otherwise it returns nil. environ is the environment from which the server's environment is
// made. CheckConfinement starts nothing.
func CheckConfinement(row config.Server, environ []string) error {
	return process.UnmetConfinement(confine.ProfileFor(row, environ, ""))
}

// dialHTTP prepares a connection over HTTP. If sse is set, it opens the event stream of the HTTP+SSE transport.
func (s *session) dialHTTP(ctx context.Context, client *http.Client, sse bool) error {
	headers, err := s.server.withKey(ctx, "header", s.server.resolveValues(ctx, "header", s.server.config.Headers))
	if err != nil {
		return err
	}
	o := transport.HTTPOptions{
		URL:               s.server.config.URL,
		Headers:           headerFromPairs(headers),
		Client:            client,
		Tokens:            s.server.tokenSource(s.key.principal),
		Handler:           s,
		HeaderParams:      s.server.listing.headerParams,
		OnGap:             s.triggerRelist,
		OnJunk:            func([]byte) { s.junk.Add(1) },
		AllowLocalNetwork: s.server.config.Origin.Kind != config.OriginProject, Logger: s.server.log,
		Budget: s.server.pool.o.Answers,
	}
	if !sse {
		s.conn = transport.NewHTTPConn(ctx, o)
		return nil
	}
	conn, err := transport.DialSSE(ctx, o)
	if err != nil {
		return err
	}
	s.conn = conn
	return nil
}
