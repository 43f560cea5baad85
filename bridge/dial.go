package bridge

import (
	"context"
	"net/http"

	"github.com/drawbridge-mcp/drawbridge/bridge/confine"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/process"
	"github.com/drawbridge-mcp/drawbridge/bridge/remote"
	"github.com/drawbridge-mcp/drawbridge/bridge/values"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/atonce"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A dialer connects a session to its server: it sets conn, and proc where there is a process. Tests put their own in the
// place of the real one.
type dialer func(ctx context.Context, s *session, sse bool) error

// A startError is a process that could not be started.
type startError struct{ error }

func (s *startError) Unwrap() error { return s.error }

// connect connects a session, not greeted yet.
func (g greeter) connect(ctx context.Context) (*session, error) {
	return g.dial(ctx, g.e.row.Type == "sse")
}

// connectSSE connects by the transport of 2024-11-05.
func (g greeter) connectSSE(ctx context.Context) (*session, error) { return g.dial(ctx, true) }

func (g greeter) dial(ctx context.Context, sse bool) (*session, error) {
	s := newSession(g.e, g.key)
	if err := g.e.pool.dial(ctx, s, sse); err != nil {
		return nil, err
	}
	return s, nil
}

func newDialer(o Options) dialer {
	return func(ctx context.Context, s *session, sse bool) error {
		if s.e.row.URL == "" {
			return s.dialStdio(ctx)
		}
		return s.dialHTTP(ctx, o.HTTPClient, sse)
	}
}

// dialStdio starts the server's process.
func (s *session) dialStdio(ctx context.Context) error {
	row := s.e.row
	env, err := s.e.entrance().Environ(ctx, s.key.principal, values.Environ(s.e.values(ctx, "env", row.Env)))
	if err != nil {
		return err
	}
	p, err := process.Start(ctx, process.Spec{
		Command: row.Command,
		Program: row.Approved(),
		Args:    row.Args,
		Dir:     row.Cwd,
		Env:     process.Environ(s.e.environ, env, s.e.pool.inheritsEnv(row)),
		Cage:    confine.Of(row, s.e.environ, s.key.principal),
		Grace:   s.e.pool.o.CloseGrace,
		Veil:    s.e.veil.Over,
	})
	if err != nil {
		return &startError{err}
	}
	s.proc = p
	s.conn = link.NewStream(link.StreamOptions{
		Send: func(_ context.Context, msg []byte) error {
			_, err := p.Stdin().Write(msg)
			return err
		},
		Try:     atonce.Writer(p.Stdin()),
		Next:    wire.NewLineReader(p.Stdout(), 0).Next,
		Close:   p.Stop,
		Handler: s,
		OnJunk:  func([]byte) { s.junk.Add(1) },
		Logger:  s.e.log,
	})
	return nil
}

// Child says what the server of a stdio row would be started as, without starting it: the program's path, and its whole
// environment as "name=value", made of ours and the row's. Inherit is Options.InheritEnv. The error says why there is no
// such program.
func Child(row config.Server, ours []string, inherit bool) (program string, env []string, err error) {
	p := Pool{o: Options{InheritEnv: inherit}}
	env = process.Environ(ours, values.Environ(row.Env), p.inheritsEnv(row))
	program, err = process.Find(row.Command, row.Cwd, env)
	return program, env, err
}

// Unconfinable says why a row that requires it cannot be confined on this machine, before anything is started; nil where it can, or
// does not ask for it.
func Unconfinable(row config.Server, environ []string) error {
	return process.Unmet(confine.Of(row, environ, ""))
}

// dialHTTP prepares a connection over HTTP; with sse it opens the stream of the old transport.
func (s *session) dialHTTP(ctx context.Context, client *http.Client, sse bool) error {
	o := remote.Options{
		URL:     s.e.row.URL,
		Headers: values.Headers(s.e.values(ctx, "header", s.e.row.Headers)),
		Client:  client,
		Signer:  s.e.signer(s.key.principal),
		Handler: s,
		Marks:   s.e.marksFor,
		OnGap:   s.missed,
		OnJunk:  func([]byte) { s.junk.Add(1) },
		Own:     s.e.row.Origin.Kind != config.Project, Logger: s.e.log,
	}
	if !sse {
		s.conn = remote.DialHTTP(o)
		return nil
	}
	conn, err := remote.DialSSE(ctx, o)
	if err != nil {
		return err
	}
	s.conn = conn
	return nil
}

// marksFor gives the arguments of a tool that travel in headers too.
func (e *endpoint) marksFor(tool string) []wire.ParamMark {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tools.Marks[tool]
}
