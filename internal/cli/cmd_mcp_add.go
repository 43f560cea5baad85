package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) mcpAddCommand() *cobra.Command {
	var asJSON, noProbe bool
	cmd := &cobra.Command{
		Use:   "add [NAME] [--url URL | -- COMMAND [ARG...]]",
		Short: "Add a server; without arguments, in a terminal, it asks for everything",
		Long: `Add a server to the configuration of this project, or with --scope user to your own.
A command goes after "--". A server that you add is approved. A command is not started. In
a terminal a URL is tried for 5 seconds, and the sign-in is started if the server requires
one; not with --no-probe or --json. Without arguments, in a terminal, it asks for everything.

A value of --env or --header may be ${VAR}, which is replaced when the server starts, so
that the file contains no secret.`,
		Example: `  drawbridge mcp add memory -- npx -y @modelcontextprotocol/server-memory
  drawbridge mcp add fs --scope user --env DEBUG=1 -- npx -y server-fs "$HOME/notes"
  drawbridge mcp add notes --url https://notes.example.com/mcp --no-probe
  drawbridge mcp add docs https://docs.example.com/mcp --header 'X-Key: ${DOCS_KEY}'`,
		// Package admin parses the words, so that all front ends report the same errors.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			words, err := parseSharedFlags(cmd, args)
			if err != nil {
				return err
			}
			if help, _ := cmd.Flags().GetBool("help"); help {
				return cmd.Help()
			}
			return a.addServer(cmd.Context(), words, asJSON, !noProbe)
		},
	}
	for _, f := range admin.AddFlags() {
		cmd.Flags().StringArrayP(f.Name, f.Short, nil, f.Usage)
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&noProbe, "no-probe", false, "do not try a URL, and start no sign-in")
	return cmd
}

// parseSharedFlags sets all flags that admin.AddFlags does not list, such as --json and --store. It returns the
// remaining words, which package admin parses.
func parseSharedFlags(cmd *cobra.Command, args []string) (words []string, err error) {
	cmd.InitDefaultHelpFlag()
	theirs := map[string]bool{}
	for _, f := range admin.AddFlags() {
		theirs["--"+f.Name] = true
		if f.Short != "" {
			theirs["-"+f.Short] = true
		}
	}
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			return append(words, args[i:]...), nil
		}
		if theirs[word] && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			words = append(words, word, args[i+1])
			i++
			continue
		}
		flag, value, joined := lookupSharedFlag(cmd, word)
		if flag == nil || theirs[strings.SplitN(word, "=", 2)[0]] {
			words = append(words, word)
			continue
		}
		if !joined {
			value = flag.NoOptDefVal
		}
		if !joined && value == "" {
			if i++; i == len(args) {
				return nil, usageError{fmt.Errorf("flag needs an argument: %s (see %q)", word,
					cmd.CommandPath()+" --help")}
			}
			value = args[i]
		}
		if err := flag.Value.Set(value); err != nil {
			return nil, usageError{fmt.Errorf("invalid argument for %s: %w", word, err)}
		}
	}
	return words, nil
}

// lookupSharedFlag returns the flag that a word such as --name or --name=value names; nil if there is none. If the word
// contains "=", joined is set, and value is the text after it.
func lookupSharedFlag(cmd *cobra.Command, word string) (flag *pflag.Flag, value string, joined bool) {
	name, value, joined := strings.Cut(word, "=")
	for _, set := range []*pflag.FlagSet{cmd.InheritedFlags(), cmd.LocalFlags()} {
		if long, ok := strings.CutPrefix(name, "--"); ok {
			flag = set.Lookup(long)
		} else if short, ok := strings.CutPrefix(name, "-"); ok && len(short) == 1 {
			flag = set.ShorthandLookup(short)
		}
		if flag != nil {
			return flag, value, joined
		}
	}
	return nil, "", false
}

// addServer adds the server that the words describe. If the words are incomplete, it asks the person for the rest, and
// then offers a test of the server. If they are complete and probe is set, it tests a server with a URL, but only at a
// terminal.
func (a *app) addServer(ctx context.Context, words []string, asJSON, probe bool) error {
	r := a.adminService()
	q, err := r.ParseAdd(words)
	if err != nil {
		return err
	}
	asks := !q.Complete()
	if asks {
		if q, err = a.runAddWizard(ctx, r, q); err != nil {
			return err
		}
	}
	if q, err = a.splitCommandLine(ctx, q, asJSON); err != nil {
		return err
	}
	c, err := r.AddServer(ctx, q)
	if err != nil {
		return err
	}
	if err := a.printChange(c, asJSON); err != nil || asJSON {
		return err
	}
	switch {
	case asks && !a.confirmDefaultYes(ctx, "Test it now?"):
		return nil // the server is added, and no test was requested
	case asks:
		return a.testNewServer(ctx, q.Name)
	case probe && q.URL != "" && a.isInteractive() && c.Phase == drawbridge.Idle:
		return a.probeNewServer(ctx, q.Name)
	}
	return nil // the server is added, and no test is made
}

// splitCommandLine checks whether the command contains a whole command line, with its arguments. If so, and if the
// person agrees, it splits the command into the command and its arguments. Without a terminal it only prints the
// problem, because the name of the program may contain spaces.
func (a *app) splitCommandLine(ctx context.Context, q admin.AddRequest, asJSON bool) (admin.AddRequest, error) {
	split, ok := q.Split()
	if !ok {
		return q, nil
	}
	if asJSON || !a.isInteractive() {
		safetext.Fprintf(a.Err, "%s: \"command\" contains spaces: put the words after %q into \"args\"\n", q.Name, split.Command)
		return q, nil
	}
	yes, err := a.confirm(ctx, fmt.Sprintf("The command contains spaces. Start %q with the arguments %s?", split.Command,
		strings.Join(split.Args, " ")), true)
	switch {
	case err != nil:
		return q, errAlreadyPrinted
	case !yes:
		return q, nil
	}
	return split, nil
}

// newServerProbeTimeout limits the test of a new server whose URL is on the command line.
const newServerProbeTimeout = 5 * time.Second

// probeNewServer tests a server that was just added, and starts the sign-in if the server requires one. A failed test
// is not an error, because the server was added. A failed sign-in is an error.
func (a *app) probeNewServer(ctx context.Context, id drawbridge.ServerID) error {
	limit, cancel := context.WithTimeout(ctx, newServerProbeTimeout)
	defer cancel()
	err := a.testServerAndPrint(limit, id, false, func(row config.Server, l drawbridge.Listing, s drawbridge.ServerStatus, fault error) error {
		if fault != nil && s.Phase == drawbridge.NeedsSignIn {
			return nil // the sign-in that is started here shows its own address
		}
		return a.printTestResult(row, l, s, fault)
	})
	switch {
	case errors.Is(err, errNeedsSignIn):
		return a.startSignIn(ctx, id)
	case errors.Is(err, errAlreadyPrinted):
		return nil
	}
	return err
}

// testNewServer tests a server that was just added, and offers a sign-in if the server requires one.
func (a *app) testNewServer(ctx context.Context, id drawbridge.ServerID) error {
	err := a.testServer(ctx, id, false, false)
	if errors.Is(err, errNeedsSignIn) && a.isInteractive() {
		return a.offerSignIn(context.WithoutCancel(ctx), id)
	}
	return err
}

// runAddWizard asks at the terminal for the missing parts of a request, and returns the complete request. Without a
// terminal it returns a usageError.
func (a *app) runAddWizard(ctx context.Context, r *admin.Service, q admin.AddRequest) (admin.AddRequest, error) {
	d, ok := a.startDialogue(ctx)
	if !ok {
		text := "mcp add needs NAME and --url URL or -- COMMAND; it asks for them only at a terminal"
		return q, usageError{fmt.Errorf("%s (see %q)", text, "drawbridge mcp add --help")}
	}
	defer d.Close()
	q, err := r.RunAddWizard(ctx, q, d)
	if errors.Is(err, admin.ErrAddCancelled) {
		d.Say(err.Error())
		err = errAlreadyPrinted
	}
	return q, err
}
