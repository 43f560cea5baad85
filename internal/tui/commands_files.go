package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/agent"
)

// export writes the current conversation.
func (b *builtin) export(ctx context.Context, args string) (Output, error) {
	text, err := b.conversationText(ctx)
	if err != nil {
		return Output{}, err
	}
	return b.writeFile("export", args, "session-", text)
}

// share writes the current conversation without what looks like a secret.
func (b *builtin) share(ctx context.Context, args string) (Output, error) {
	text, err := b.conversationText(ctx)
	if err != nil {
		return Output{}, err
	}
	if text, err = b.o.Redact(ctx, text); err != nil {
		return Output{}, fmt.Errorf("/share: nothing was written, because the secrets to replace are not known: %w", err)
	}
	out, err := b.writeFile("share", args, "share-", text)
	if err == nil {
		out.Text += "\n\nNothing was sent. What looks like a secret was replaced; read the file before you pass it on."
	}
	return out, err
}

// conversationText returns the current conversation as Markdown.
func (b *builtin) conversationText(ctx context.Context) (string, error) {
	nodes, err := b.session.Load().Tree(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, n := range nodes {
		if !n.Current || n.Text == "" && n.Calls == 0 {
			continue
		}
		title := map[agent.EntryKind]string{agent.PromptEntry: "Prompt", agent.ModelEntry: "Answer",
			agent.SummaryEntry: "Summary"}[n.Kind]
		fmt.Fprintf(&text, "## %s\n\n", title)
		if n.Text != "" {
			fmt.Fprintf(&text, "%s\n\n", n.Text)
		}
		if n.Calls > 0 {
			fmt.Fprintf(&text, "(%d calls of tools)\n\n", n.Calls)
		}
	}
	return text.String(), nil
}

// writeFile writes a text to the file that the arguments of a command name. It does not overwrite a file.
func (b *builtin) writeFile(command, path, prefix, text string) (Output, error) {
	if path == "" {
		path = prefix + b.session.Load().Snapshot().Session + ".md"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.o.Dir, path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Output{}, fmt.Errorf("/%s: %w", command, err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return Output{}, fmt.Errorf("/%s: %w", command, err)
	}
	return Output{Text: "Written to `" + strings.ReplaceAll(path, "`", "'") + "`."}, nil
}
