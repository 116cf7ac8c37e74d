import gradio

gradio.Interface(fn=lambda name: f"Hello {name}!", inputs=gradio.Textbox(label="Your name"), outputs="text").launch()
