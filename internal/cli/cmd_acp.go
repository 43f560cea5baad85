package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/agentrpc"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// acpCommand returns the command "acp".
func (a *app) acpCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Let an editor hold sessions of the agent (Agent Client Protocol)",
		Long: `Speak the Agent Client Protocol on standard input and output, so that an editor can hold sessions of
Drawbridge's own agent. The editor starts this command and chooses the working directory of each session.

Calls that may change something are asked about in the editor, as the permission mode of the session
says. MCP servers that the editor sends are not used: sessions have the servers of Drawbridge. The
command ends when its input ends; sessions stay on the disk and can be loaded again.`,
		Example: "  drawbridge acp\n  drawbridge acp --permission-mode plan",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer surviveBrokenPipes()()
			return ignoreCanceled(agentrpc.ServeACP(cmd.Context(), a.pipes(), &sessionHost{a, f}, buildVersion()))
		},
	}
	addSessionFlags(cmd, &f)
	return cmd
}

// runLink lets a program hold the session that the flags describe.
func (a *app) runLink(ctx context.Context, f agentFlags, args []string) error {
	if f.print || f.interactive || len(args) > 0 {
		return usageError{errors.New("--json takes prompts from standard input only: no --print, no --interactive, no prompt")}
	}
	defer surviveBrokenPipes()()
	return ignoreCanceled(agentrpc.ServeLink(ctx, a.pipes(), &sessionHost{a, f}, agentrpc.Opening{Elicitation: true}))
}

// surviveBrokenPipes makes a write to a client that has ended an error, so that sessions are closed in order; else the
// system ends the process. It returns a function that restores that.
func surviveBrokenPipes() (restore func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// pipes returns standard input and output.
func (a *app) pipes() agentrpc.Pipes { return agentrpc.Pipes{In: a.In, Out: a.Out} }

// A sessionHost opens sessions for the programs that package agentrpc serves.
type sessionHost struct {
	a     *app
	flags agentFlags
}

var _ agentrpc.Host = (*sessionHost)(nil)

// Hold implements [agentrpc.Host].
func (h *sessionHost) Hold(ctx context.Context, o agentrpc.Opening,
	work func(context.Context, agentrpc.Opened) error) error {
	// Each session has its own directory, and nothing but the protocol may be written to standard output.
	a, f := *h.a, h.flags
	a.Out = io.Discard
	if o.Dir != "" {
		if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("open the session: %s is not a directory", safetext.Exact(o.Dir))
		}
		a.Dir = o.Dir
	}
	f.elicitation = o.Elicitation
	if o.Session != "" {
		if err := a.findSession(o.Session); err != nil {
			return err
		}
		f.resume, f.exact, f.resumeLast = o.Session, true, false
	}
	return a.withHistory(ctx, f, func(ctx context.Context, s *agent.Session, history *agent.FileHistory) error {
		return work(ctx, agentrpc.Opened{Session: s, History: history, File: history.Path(), Notices: unused(o.Servers)})
	})
}

// unused says that MCP servers of a client are not used.
func unused(servers []agentrpc.ClientServer) []string {
	if len(servers) == 0 {
		return nil
	}
	var names []string
	for _, s := range servers {
		names = append(names, safetext.Exact(s.Name))
	}
	return []string{fmt.Sprintf("The MCP servers of this client are not used (%s). "+
		"Add them to Drawbridge with \"drawbridge mcp add\" or \"drawbridge import\".", strings.Join(names, ", "))}
}

// findSession checks that a session was held in the working directory.
func (a *app) findSession(id string) error {
	dir, err := a.sessionsDir()
	if err != nil {
		return err
	}
	all, err := agent.ListSessions(dir)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(s agent.SessionInfo) bool { return s.ID == id }) {
		return fmt.Errorf("no session %s was held in this directory", safetext.Exact(id))
	}
	return nil
}

// Sessions implements [agentrpc.Host].
func (h *sessionHost) Sessions(_ context.Context, dir string) (all []agentrpc.ListedSession, err error) {
	a := *h.a
	a.Dir = cmp.Or(dir, a.Dir)
	sessions, err := a.sessionsDir()
	if err != nil {
		return nil, err
	}
	found, err := agent.ListSessions(sessions)
	for _, s := range found {
		all = append(all, agentrpc.ListedSession{Dir: a.Dir, SessionInfo: s})
	}
	return all, err
}

// Models implements [agentrpc.Host].
func (h *sessionHost) Models(ctx context.Context) (names []string, err error) {
	a := *h.a
	models, _, err := a.openChatModels(ctx)
	if err != nil {
		return nil, err
	}
	defer models.Close()
	for _, provider := range models.List(ctx) {
		for _, m := range provider.Models {
			names = append(names, m.String())
		}
	}
	return names, ctx.Err()
}

// FindModel implements [agentrpc.Host].
func (h *sessionHost) FindModel(ctx context.Context, name string) (agent.Model, error) {
	a := *h.a
	models, _, err := a.openChatModels(ctx)
	if err != nil {
		return nil, err
	}
	defer models.Close()
	return models.Find(ctx, name)
}
