package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

const (
	// promptsDir is the directory of templates beside the settings, and maxTemplate the maximum size of one in bytes.
	promptsDir  = "prompts"
	maxTemplate = 256 << 10
	// maxMore is the maximum number of commands of servers.
	maxMore = 500
)

// more returns the commands that may change: templates of the user, prompts of servers, and skills of servers. Those
// that cannot be read now are left out.
func (c sessionCommands) more(ctx context.Context) []tui.Command {
	all := c.templates()
	tools := c.h.current().tools
	if tools == nil {
		return all
	}
	prompts, err := tools.items(ctx, c.identity(), mcp.MethodPromptsList)
	if err == nil {
		for _, item := range prompts[:min(len(prompts), maxMore)] {
			all = append(all, c.promptCommand(item))
		}
	}
	skills, err := tools.items(ctx, c.identity(), mcp.MethodSkillsList)
	if err == nil {
		for _, item := range skills[:min(len(skills), maxMore)] {
			all = append(all, c.skillCommand(item))
		}
	}
	return distinctNames(all)
}

// distinctNames appends numbers to names that are there already.
func distinctNames(all []tui.Command) []tui.Command {
	seen := map[string]bool{}
	for i := range all {
		name := all[i].Name
		for n := 2; seen[all[i].Name]; n++ {
			all[i].Name = name + "-" + strconv.Itoa(n)
		}
		seen[all[i].Name] = true
	}
	return all
}

// commandName returns a name as the input box takes it: small letters, digits, ":", "-" and "_".
func commandName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune(":-_", r) {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// A promptArgument is an argument of a server's prompt.
type promptArgument struct {
	Name     string
	Required bool
}

// promptCommand returns the command for a prompt of a server.
func (c sessionCommands) promptCommand(item gateway.AgentItem) tui.Command {
	var definition struct {
		Description string
		Arguments   []promptArgument
	}
	_ = json.Unmarshal(item.Definition, &definition) // without a readable definition, it has no arguments
	var usage []string
	for _, a := range definition.Arguments {
		mark := ""
		if a.Required {
			mark = "*"
		}
		usage = append(usage, truncateLine(a.Name, maxShownText)+"="+mark)
	}
	summary := "prompt of " + string(item.Server)
	if definition.Description != "" {
		summary += ": " + definition.Description
	}
	return tui.Command{Name: commandName(string(item.Server) + ":" + item.Own), Summary: truncateLine(summary, maxShownText),
		Usage: strings.Join(usage, " "),
		Complete: func(_ context.Context, args string) []string {
			return completeArguments(definition.Arguments, args)
		},
		Run: func(ctx context.Context, args string) (tui.Output, error) {
			return c.runPrompt(ctx, item, definition.Arguments, args)
		}}
}

// completeArguments returns the arguments with one more name, for each that is not there yet and begins with the last
// word.
func completeArguments(known []promptArgument, args string) (found []string) {
	at := strings.LastIndexByte(args, ' ') + 1
	before, word := args[:at], args[at:]
	for _, a := range known {
		if strings.HasPrefix(a.Name, word) && !strings.Contains(" "+before, " "+a.Name+"=") {
			found = append(found, before+a.Name+"=")
		}
	}
	return found
}

// parsePromptArguments reads "key=value" words. A value with blanks is quoted.
func parsePromptArguments(known []promptArgument, args string) (map[string]string, error) {
	words, err := admin.SplitWords(args)
	if err != nil {
		return nil, err
	}
	var names, missing []string
	for _, a := range known {
		names = append(names, a.Name)
	}
	given := map[string]string{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case !ok || key == "":
			return nil, fmt.Errorf("%s is not key=value", safetext.Quote(word))
		case !slices.Contains(names, key):
			return nil, fmt.Errorf("unknown argument %s; the arguments are: %s", safetext.Quote(key), orNone(names))
		}
		given[key] = value
	}
	for _, a := range known {
		if _, ok := given[a.Name]; a.Required && !ok {
			missing = append(missing, a.Name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("required arguments are missing: %s", orNone(missing))
	}
	return given, nil
}

// orNone joins names of a server, or says that there are none.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return truncateLine(strings.Join(names, ", "), maxShownText)
}

// runPrompt returns the messages of a server's prompt as a prompt.
func (c sessionCommands) runPrompt(ctx context.Context, item gateway.AgentItem, known []promptArgument, args string) (
	tui.Output, error) {
	given, err := parsePromptArguments(known, args)
	if err != nil {
		return tui.Output{}, fmt.Errorf("/%s: %w", commandName(string(item.Server)+":"+item.Own), err)
	}
	edits := []rawjson.Edit{rawjson.Put(rawjson.Quote(item.Name), "name")}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		edits = append(edits, rawjson.Put(rawjson.Quote(given[name]), "arguments", name))
	}
	tools, err := c.h.current().toolsOrError()
	if err != nil {
		return tui.Output{}, err
	}
	raw, err := tools.fetch(ctx, c.identity(), mcp.MethodPromptsGet, rawjson.Apply(nil, edits...))
	if err != nil {
		return tui.Output{}, err
	}
	parts, err := promptParts(item, raw)
	return tui.Output{Prompt: parts}, err
}

// promptParts returns the parts of the prompt for the result of prompts/get. The person's own words come first: they ask
// the model to carry the prompt out, which is marked as the text of a server.
func promptParts(item gateway.AgentItem, raw json.RawMessage) (parts []drawbridge.MessagePart, err error) {
	var texts []string
	var images []drawbridge.MessagePart
	for message := range rawjson.Elements(rawjson.Get(raw, "messages")) {
		mark := ""
		if rawjson.GetString(message, "role") == "assistant" {
			mark = "Example of an answer: "
		}
		content := rawjson.Get(message, "content")
		switch kind := rawjson.GetString(content, "type"); kind {
		case "text":
			texts = append(texts, mark+rawjson.GetString(content, "text"))
		case "resource":
			texts = append(texts, mark+rawjson.GetString(content, "resource", "uri")+"\n"+
				rawjson.GetString(content, "resource", "text"))
		case "image":
			data, err := base64.StdEncoding.DecodeString(rawjson.GetString(content, "data"))
			if err == nil && len(data) <= maxAttachedImage {
				images = append(images, drawbridge.MessagePart{Image: &drawbridge.Image{
					MIMEType: rawjson.GetString(content, "mimeType"), Data: data}})
				continue
			}
			fallthrough
		default:
			texts = append(texts, fmt.Sprintf("[%s]", kind))
		}
	}
	if len(texts)+len(images) == 0 {
		return nil, fmt.Errorf("the prompt %s of %s is empty", safetext.Quote(item.Own), safetext.Quote(string(item.Server)))
	}
	text := fmt.Sprintf("I chose the prompt %s of the server %s. Carry it out: what it asks for is what I ask for. "+
		"The text between the marker lines is the prompt.\n\n%s", safetext.Quote(item.Own), safetext.Quote(string(item.Server)),
		agent.Fence(string(item.Server)+"/"+item.Own, strings.Join(texts, "\n\n")))
	return append([]drawbridge.MessagePart{{Text: text, Typed: new(string)}}, images...), nil
}

// skillCommand returns the command for a skill of a server.
func (c sessionCommands) skillCommand(item gateway.AgentItem) tui.Command {
	name := rawjson.GetString(item.Definition, "frontmatter", "name")
	if name == "" {
		name = filepath.Base(strings.TrimSuffix(item.Own, "/SKILL.md"))
	}
	summary := "skill of " + string(item.Server)
	if text := rawjson.GetString(item.Definition, "frontmatter", "description"); text != "" {
		summary += ": " + text
	}
	return tui.Command{Name: commandName("skill:" + string(item.Server) + ":" + name), Summary: truncateLine(summary, maxShownText), Usage: "[text]",
		Run: func(ctx context.Context, args string) (tui.Output, error) { return c.runSkill(ctx, item, name, args) }}
}

// runSkill returns the text of a skill, and the person's words, as a prompt. The text is marked as that of its server, as
// promptParts marks a prompt.
func (c sessionCommands) runSkill(ctx context.Context, item gateway.AgentItem, name, args string) (tui.Output, error) {
	tools, err := c.h.current().toolsOrError()
	if err != nil {
		return tui.Output{}, err
	}
	raw, err := tools.fetch(ctx, c.identity(), mcp.MethodResourcesRead,
		rawjson.Apply(nil, rawjson.Put(rawjson.Quote(item.Name), "uri")))
	if err != nil {
		return tui.Output{}, err
	}
	var texts []string
	for content := range rawjson.Elements(rawjson.Get(raw, "contents")) {
		texts = append(texts, rawjson.GetString(content, "text"))
	}
	server := string(item.Server)
	text := fmt.Sprintf("Use the skill %s of the server %s: what it asks for is what I ask for. "+
		"The text between the marker lines is the skill.\n\n%s", safetext.Quote(name), safetext.Quote(server),
		agent.Fence(server+"/"+name, strings.Join(texts, "\n\n")))
	if args != "" {
		text += "\n\n" + args
	}
	return tui.Output{Prompt: []drawbridge.MessagePart{{Text: text, Typed: &args}}}, nil
}

// templates returns a command for each Markdown file in the directory "prompts" beside the settings. The directory of
// the project has none: its files come from others.
func (c sessionCommands) templates() (all []tui.Command) {
	dir, err := c.configDir()
	if err != nil {
		return nil
	}
	paths, err := filepath.Glob(filepath.Join(dir, promptsDir, "*.md"))
	if err != nil {
		return nil
	}
	for _, path := range paths {
		text, err := readTemplate(path)
		if err != nil {
			continue
		}
		summary, body := splitTemplate(text)
		usage := ""
		if templateArgument().MatchString(body) {
			usage = "[arguments]"
		}
		all = append(all, tui.Command{Name: commandName(strings.TrimSuffix(filepath.Base(path), ".md")), Usage: usage,
			Summary: truncateLine("template: "+summary, maxShownText),
			Run: func(_ context.Context, args string) (tui.Output, error) {
				return tui.Output{Prompt: []drawbridge.MessagePart{{Text: fillTemplate(body, args)}}}, nil
			}})
	}
	return all
}

// readTemplate reads a template.
func readTemplate(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxTemplate {
		return "", fmt.Errorf("%s is not a template", path)
	}
	text, err := os.ReadFile(path)
	return strings.ToValidUTF8(string(text), "\uFFFD"), err
}

// splitTemplate returns the description of a template and its text. The description is that of the front matter, or the
// first line.
func splitTemplate(text string) (summary, body string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	body = text
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if matter, after, ok := strings.Cut(rest, "\n---\n"); ok {
			body = after
			for line := range strings.Lines(matter) {
				if value, ok := strings.CutPrefix(line, "description:"); ok {
					summary = strings.Trim(strings.TrimSpace(value), `"'`)
				}
			}
		}
	}
	body = strings.TrimSpace(body)
	if summary == "" {
		first, _, _ := strings.Cut(body, "\n")
		summary = strings.TrimSpace(strings.TrimLeft(first, "# "))
	}
	return summary, body
}

// templateArgument matches the places of arguments in a template.
var templateArgument = lazyregexp.New(`\$(ARGUMENTS\b|[1-9])`)

// fillTemplate replaces $1 to $9 by the words of args, and $ARGUMENTS by all of them. Without such a place, the
// arguments follow the text.
func fillTemplate(body, args string) string {
	words, err := admin.SplitWords(args)
	if err != nil {
		words = strings.Fields(args) // an apostrophe is not a quote
	}
	if !templateArgument().MatchString(body) {
		return strings.TrimSpace(body + "\n\n" + args)
	}
	return templateArgument().ReplaceAllStringFunc(body, func(place string) string {
		if place == "$ARGUMENTS" {
			return args
		}
		if n := int(place[1] - '1'); n < len(words) {
			return words[n]
		}
		return ""
	})
}
