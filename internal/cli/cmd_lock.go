package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/spf13/cobra"
)

// lockCommands runs the commands on the lockfile.
type lockCommands struct {
	Out, Err io.Writer
	// ConfigOptions returns the options that locate the configuration files.
	ConfigOptions func() config.Options
	// WithGateway opens the gateway, whose servers start when they are needed, and does work with it.
	WithGateway func(ctx context.Context, work func(context.Context, *gateway.Gateway) error) error
	// AdminRecorder records in the audit that the file was written.
	AdminRecorder gateway.AdminRecorder
	// ErrAlreadyPrinted ends a command that failed and has printed its findings.
	ErrAlreadyPrinted error
}

// command returns the command "lock" with its subcommands.
func (d lockCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Keep the allowed definitions of servers in a file under version control",
		Long: `Keep the allowed definitions of servers in a file under version control: drawbridge.lock beside your
drawbridge.toml, or the file that "lock_file" of its [mcp] names. If it exists, a tool with another definition is
held. It has a line for each tool, prompt and resource template, and one for the instructions of each
server. It covers your own servers, and none of a project directory.`,
		Example: `  drawbridge lock write
  drawbridge lock verify                                                 exit code 1 where something differs
  drawbridge lock verify --mcp servers.json --file drawbridge.lock       in CI`,
	}
	var file string
	cmd.PersistentFlags().StringVar(&file, "file", "", "`PATH` of another lockfile")
	cmd.AddCommand(d.writeCommand(&file), d.verifyCommand(&file), d.showCommand(&file))
	return cmd
}

// lockfilePath returns the path of the lockfile.
func (d lockCommands) lockfilePath(file string) (string, error) {
	if file != "" {
		return file, nil
	}
	places := d.ConfigOptions()
	s, err := config.LoadSettings(places)
	if err != nil {
		return "", err
	}
	path, _, err := config.LockfilePath(places, s)
	if err == nil && path == "" {
		err = admin.UserError("No lockfile is configured: name one with --file.")
	}
	return path, err
}

// readLockfile reads the lockfile.
func readLockfile(path string) ([]shield.LockedTool, error) {
	text, err := config.ReadLockfile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no lockfile exists at %s yet (drawbridge lock write creates it)", path)
	}
	if err != nil {
		return nil, err
	}
	return shield.ParseLockfile(path, text)
}

// serverDefinitions are the definitions that a server listed, or the reason why it could not be listed.
type serverDefinitions struct {
	server      drawbridge.ServerID
	definitions []lockableDefinition
	err         error
	// missingParts are the parts whose list is missing, and fault is the reason.
	missingParts []string
	missingCause string
}

// A lockableDefinition is a definition that a server listed, of a tool or another part.
type lockableDefinition struct {
	part string
	shield.ListedTool
	// pinned is the definition in force; held reports that the server now offers another one.
	pinned  json.RawMessage
	changed bool
}

// listServers mounts and lists the servers with these names, or all of them without names.
func (d lockCommands) listServers(ctx context.Context, names []string) (all []serverDefinitions, err error) {
	err = d.WithGateway(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		rows, err := lockableRows(g.Config(), names)
		if err != nil {
			return err
		}
		for _, row := range rows {
			l := serverDefinitions{server: row.ID}
			var said drawbridge.Listing
			if said, l.err = g.Mount(ctx, row.ID); l.err == nil {
				l.definitions, l.err = lockableDefinitions(ctx, g, row, said)
				l.missingParts, l.missingCause = missingListParts(g, said)
			}
			all = append(all, l)
		}
		return nil
	})
	return all, err
}

// missingListParts returns the parts whose list a server did not return and that have no earlier list.
func missingListParts(g *gateway.Gateway, said drawbridge.Listing) (parts []string, fault string) {
	for _, s := range g.Status() {
		if s.Server == said.Server && s.Phase == drawbridge.Ready {
			fault = s.Fault
		}
	}
	if len(said.Prompts) == 0 && strings.Contains(fault, "list prompts: ") {
		parts = append(parts, shield.PartPrompt)
	}
	if len(said.Templates) == 0 && strings.Contains(fault, "list resourceTemplates: ") {
		parts = append(parts, shield.PartTemplate)
	}
	return parts, fault
}

// lockableRows returns the rows with these names, or without names all of the person's own. It includes rows that
// cannot be mounted because of a mistake in them.
func lockableRows(set config.Configuration, names []string) ([]config.Server, error) {
	rows := slices.DeleteFunc(set.Mountable(), func(row config.Server) bool { return !gateway.LockfileCovers(row) })
	if len(names) == 0 {
		for _, row := range set.Servers {
			first := !slices.ContainsFunc(rows, func(r config.Server) bool { return r.ID == row.ID })
			if row.Phase == drawbridge.Refused && gateway.LockfileCovers(row) && first {
				rows = append(rows, row)
			}
		}
		return rows, nil
	}
	var some []config.Server
	for _, name := range names {
		i := slices.IndexFunc(rows, func(row config.Server) bool { return string(row.ID) == name })
		if i < 0 {
			return nil, admin.UserError(
				fmt.Sprintf("Server %q is not one of your own that is in force (drawbridge mcp list).", name))
		}
		some = append(some, rows[i])
	}
	return some, nil
}

// lockableDefinitions returns the definitions of a listing that can be locked, with their pins.
func lockableDefinitions(ctx context.Context, g *gateway.Gateway, row config.Server, said drawbridge.Listing) (
	all []lockableDefinition, err error) {
	for _, part := range shield.PinnedParts() {
		pins, err := g.Pins(ctx, row, part)
		if err != nil {
			return nil, err
		}
		for _, l := range gateway.PinnableItems(said, part) {
			t := lockableDefinition{part, l, l.Definition, false}
			if pin, ok := pins[l.Tool]; ok {
				t.pinned, t.changed = pin.Definition, pin.Pending != nil
			}
			all = append(all, t)
		}
	}
	return all, nil
}

func (d lockCommands) writeCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use:   "write [SERVER...]",
		Short: "Write the pinned definitions of servers to the lockfile",
		Long: `Write the pinned definitions of servers to the lockfile: of all your own servers, or of those named. The
command starts them. For a changed tool that waits, it writes the pinned definition and not the new one. Lines of
other servers stay, and so do those of a server that cannot be listed: it is named, and the exit code is 1. If no
server can be listed, nothing is written.`,
		Example: "  drawbridge lock write\n  drawbridge lock write github",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := d.lockfilePath(*file)
			if err != nil {
				return err
			}
			all, err := d.listServers(cmd.Context(), args)
			if err != nil {
				return err
			}
			return d.writeLockfile(path, all)
		},
	}
}

func (d lockCommands) writeLockfile(path string, all []serverDefinitions) error {
	whole := map[drawbridge.ServerID]serverDefinitions{}
	var tools []shield.LockedTool
	var absent []string
	held := 0
	for _, l := range all {
		switch {
		case l.err != nil:
			absent = append(absent, safetext.Line(string(l.server)))
			safetext.Fprintf(d.Err, "✗ %s: could not be listed, so its lines stay as they were: %s\n",
				absent[len(absent)-1], safetext.Line(l.err.Error()))
			continue
		case len(l.missingParts) > 0:
			absent = append(absent, string(l.server))
			safetext.Fprintf(d.Err,
				"✗ %s: the listing is incomplete, so the lines of its missing parts stay as they were: %s\n", l.server,
				safetext.Line(l.missingCause))
		}
		whole[l.server] = l
		for _, t := range l.definitions {
			if t.changed {
				held++
			}
			tools = append(tools, shield.LockedTool{Server: l.server, Part: t.part, Tool: t.Tool, Definition: t.pinned})
		}
	}
	var leftOut []shield.LockedTool
	if len(whole) > 0 {
		err := d.AdminRecorder.Run(gateway.AdminAction{Command: "lock write", Subject: path}, func() (err error) {
			leftOut, err = gateway.EditLockfile(path, func(said []shield.LockedTool) []shield.LockedTool {
				stay := slices.DeleteFunc(said, func(s shield.LockedTool) bool {
					l, ok := whole[s.Server]
					return ok && !slices.Contains(l.missingParts, s.Part)
				})
				return append(stay, tools...)
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, l := range leftOut {
		safetext.Fprintf(d.Err, "✗ %s %s: two readers may read two things in its definition, so it cannot be locked\n",
			l.Server, safetext.Exact(shield.PinLabel(l.Part, l.Tool)))
	}
	if held > 0 {
		safetext.Fprintf(d.Err,
			"%d definitions changed and wait; the file has what was pinned (drawbridge shield held)\n", held)
	}
	switch {
	case len(whole) > 0:
		safetext.Fprintf(d.Out, "✓ %d definitions of %d servers in %s\n", len(tools)-len(leftOut), len(whole), path)
	case len(all) == 0:
		return errors.New("nothing was written: your own configuration has no servers (drawbridge mcp list)")
	default:
		safetext.Fprintf(d.Err, "Nothing was written to %s.\n", path)
	}
	if len(absent) > 0 {
		safetext.Fprintf(d.Err,
			"drawbridge mcp test NAME shows what is wrong; once it is mended: drawbridge lock write %s\n",
			strings.Join(absent, " "))
	}
	if len(absent)+len(leftOut) > 0 {
		return d.ErrAlreadyPrinted
	}
	return nil
}

func (d lockCommands) showCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the lockfile",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			path, err := d.lockfilePath(*file)
			if err != nil {
				return err
			}
			tools, err := readLockfile(path)
			if err != nil {
				return err
			}
			if asJSON {
				rows := make([]lockedJSON, 0, len(tools))
				for _, t := range tools {
					rows = append(rows, lockedJSON{t.Server, t.Part, t.Tool,
						shield.Fingerprint(t.Definition), t.Definition})
				}
				return PrintJSON(d.Out, rows)
			}
			tw := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "SERVER\tTOOL\tDEFINITION")
			for _, t := range tools {
				safetext.Fprintf(tw, "%s\t%s\t%s\n", t.Server, safetext.Exact(shield.PinLabel(t.Part, t.Tool)),
					shield.Fingerprint(t.Definition))
			}
			return tw.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, definitions whole")
	return cmd
}

type lockedJSON struct {
	Server     drawbridge.ServerID `json:"server"`
	Part       string              `json:"part,omitempty"`
	Tool       string              `json:"tool"`
	Hash       string              `json:"hash"`
	Definition json.RawMessage     `json:"definition"`
}
