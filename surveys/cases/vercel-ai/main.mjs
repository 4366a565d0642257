// A Vercel AI SDK agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ToolLoopAgent, tool } from "ai";
import { z } from "zod";

const env = process.env;
const milliseconds = Number(env.CASE_TIMEOUT_S) * 1000;
const provider = createOpenAICompatible({ name: "lab", baseURL: env.OPENAI_BASE_URL, apiKey: env.OPENAI_API_KEY });
const model = provider(env.OPENAI_MODEL);
const print = (event) => console.log(JSON.stringify(event));
let left = null; // only a stream hands the finished steps to its caller
const onAbort = ({ steps }) => {
  const open = steps.flatMap((step) => step.toolCalls).length - steps.flatMap((step) => step.toolResults).length;
  left = { messages: steps.at(-1)?.response.messages.length ?? 0, open_tool_calls: open };
};

const lookup = tool({
  description: "Looks up facts about a query.",
  inputSchema: z.object({ query: z.string() }),
  execute: async ({ query }, { abortSignal }) => {
    const url = `${env.CASE_TOOL_URL}?query=${encodeURIComponent(query)}`;
    return (await fetch(url, { signal: abortSignal })).text();
  },
});
const instructions = "Use your tool, then answer.";
const researcher = new ToolLoopAgent({ model, instructions, tools: { lookup }, onAbort });

const research = tool({
  description: "Researches a question.",
  inputSchema: z.object({ task: z.string() }),
  execute: async ({ task }, { abortSignal }) => (await researcher.generate({ prompt: task, abortSignal })).text,
});
const agent =
  env.CASE_AGENT === "sub" ? new ToolLoopAgent({ model, instructions, tools: { research }, onAbort }) : researcher;

const ways = {
  timeout: () => ({ timeout: milliseconds }),
  "step-timeout": () => ({ timeout: { stepMs: milliseconds } }),
  "abort-signal": () => ({ abortSignal: AbortSignal.timeout(milliseconds) }),
};
async function answer(options) {
  if (env.CASE_STREAM !== "1") return (await agent.generate(options)).text;
  const result = await agent.stream(options);
  let aborted = null;
  for await (const part of result.stream) if (part.type === "abort") aborted = part;
  if (aborted) throw new DOMException(aborted.reason, "AbortError");
  return result.text;
}

print({ event: "start" });
try {
  const text = await answer({ prompt: env.CASE_QUESTION, ...ways[env.CASE_WAY]() });
  print({ event: "end", outcome: "answer", text, error: null, left });
} catch (error) {
  const outcome = /TimeoutError|AbortError/.test(error.name) ? "timeout" : "error";
  print({ event: "end", outcome, text: null, error: `${error.name}: ${error.message}`, left });
}
for await (const _ of process.stdin);
