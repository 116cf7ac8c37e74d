import streamlit as st

st.title("Greeting")
name = st.text_input("Your name")
if name:
    st.write(f"Hello {name}!")
