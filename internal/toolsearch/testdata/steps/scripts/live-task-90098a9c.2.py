code = '''"use client";

import { useState } from "react";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";

export default function CreatePost() {
  const [title, setTitle] = useState("");
  const [content, setContent] = useState("");
  const canPublish = title.trim() !== "" && content.trim() !== "";

  function publish(event: React.FormEvent) {
    event.preventDefault();
    if (canPublish) console.log({ title, content });
  }

  return (
    <form onSubmit={publish} className="mx-auto max-w-xl space-y-4 p-6">
      <h1 className="text-2xl font-semibold">Create post</h1>
      <Input placeholder="Title" value={title} onChange={(e) => setTitle(e.target.value)} />
      <Input placeholder="Content" value={content} onChange={(e) => setContent(e.target.value)} />
      <Button type="submit" disabled={!canPublish} className="w-full">Publish</Button>
    </form>
  );
}
'''
print(tools.filesystem.write_file(path="/root/code/shadcn_ui.ts", content=code))
